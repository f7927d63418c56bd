// A lesson as a game: `docs/_site/games.py` has computed all positions, and this goes from one to the next.
"use strict";

function element(name, properties = {}, children = []) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function play(figure) {
  const game = JSON.parse(figure.querySelector("script").textContent);
  const state = {moves: [], shown: false};

  // The rows that some moves make, and the position that they come to.
  function follow(moves) {
    let node = game.nodes[0];
    const rows = [];
    const names = new Map(node.columns);
    for (const thread of moves) {
      const [steps, next] = node.choices[thread];
      rows.push(...steps);
      node = game.nodes[next];
      node.columns.forEach(([number, name]) => names.set(number, name));
    }
    return {node, rows, columns: [...names].sort((one, other) => one[0] - other[0])};
  }

  function history(columns, rows) {
    const head = element("tr", {}, columns.map(([, name], at) => element("th", {scope: "col", textContent: `${at + 1} ${name}`, className: `t${at + 1}`})));
    const lines = rows.map(([thread, text]) => element("tr", {}, columns.map(([number], at) =>
      element("td", {className: `t${at + 1}`, textContent: number === thread ? text : ""}))));
    return element("table", {}, [element("thead", {}, [head]), element("tbody", {}, lines)]);
  }

  function says(node, count) {
    const steps = `${count} step${count === 1 ? "" : "s"}`;
    if (node.outcome === "failed") return `\u2717 ${node.message}. Found, in ${steps}; the explorer takes ${game.explorers.length}.`;
    if (node.outcome === "held") return `It came to its end, and all holds (${steps}). Undo, and try another order.`;
    return steps;
  }

  function button(text, act, disabled = false) {
    return element("button", {type: "button", textContent: text, onclick: act, disabled});
  }

  function show() {
    const here = follow(state.moves);
    const {columns, rows} = state.shown ? follow(game.explorers) : here;
    const keys = new Map(here.columns.map(([number], at) => [number, at + 1]));
    const next = here.node.threads.map(([thread, ready, text]) => {
      const can = ready && here.node.outcome === "open";
      const choose = button(`${keys.get(thread)} ${columns.find(([number]) => number === thread)?.[1] ?? thread}: ${text}`,
        () => { state.moves.push(thread); state.shown = false; show(); }, !can);
      choose.className = `choice t${keys.get(thread)}`;
      choose.dataset.thread = thread;
      return choose;
    });
    figure.replaceChildren(
      element("p", {textContent: state.shown ? "The explorer's schedule:" : "You are the scheduler. Choose which thread does its next step, until something fails."}),
      element("div", {className: "played", tabIndex: 0}, [history(columns, rows)]),
      element("div", {className: "next"}, next),
      element("p", {className: `outcome ${here.node.outcome}`, ariaLive: "polite", textContent: says(here.node, state.moves.length)}),
      element("div", {className: "keys"}, [
        button("Undo", () => { state.moves.pop(); show(); }, state.moves.length === 0),
        button("Restart", () => { state.moves = []; show(); }, state.moves.length === 0),
        button(state.shown ? "Back to yours" : "Show the explorer's", () => { state.shown = !state.shown; show(); }),
      ]));
  }

  show();
}

document.querySelectorAll("figure.game").forEach(play);
