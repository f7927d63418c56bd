// A page as slides: each section fills the screen, one at a time. Without JavaScript the page is a page.
"use strict";

function present() {
  const slides = [...document.querySelectorAll("article section section")];
  let at = 0;

  function show(next) {
    slides[at].classList.remove("shown");
    at = Math.max(0, Math.min(slides.length - 1, next));
    slides[at].classList.add("shown");
    slides[at].scrollTop = 0;
  }

  function leave() {
    slides[at].classList.remove("shown");
    document.body.classList.remove("presenting");
    document.removeEventListener("keydown", turn);
    if (document.fullscreenElement) document.exitFullscreen();
  }

  function turn(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const steps = {ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1};
    if (event.key === "Escape") leave();
    else if (event.key in steps) show(at + steps[event.key]);
    else return;
    event.preventDefault();
  }

  document.body.classList.add("presenting");
  document.addEventListener("keydown", turn);
  show(0);
}

for (const button of document.querySelectorAll("button.present")) {
  button.addEventListener("click", () => { button.blur(); present(); });
}
