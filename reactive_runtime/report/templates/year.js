
// Says which night of which machine the pointer is on.
const year = document.getElementById("year");
const pointed = document.getElementById("pointed");
const machines = [...document.querySelectorAll("#machines tbody th")].map((it) => it.textContent);
year.addEventListener("mousemove", (event) => {
  const box = year.getBoundingClientRect();
  const at = (to, from, size, count) => Math.min(Math.max(Math.floor(((to - from) / size) * count), 0), count - 1);
  const night = new Date(`${year.dataset.first}T00:00:00Z`);
  night.setUTCDate(night.getUTCDate() + at(event.clientX, box.left, box.width, year.naturalWidth));
  const machine = machines[at(event.clientY, box.top, box.height, year.naturalHeight)] ?? "…";
  pointed.textContent = `${night.toISOString().slice(0, 10)}: ${machine}`;
});
