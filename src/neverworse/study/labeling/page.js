// Buttons and keys of the labeling page. One request at a time, so that a second press does not
// answer a row that nobody has seen.
(() => {
  const work = document.getElementById("work");
  const message = document.getElementById("message");
  let busy = false;

  const ask = async (button) => {
    if (busy) return;
    busy = true;
    const shown = document.getElementById("asked");
    const row = Number(button.dataset.row ?? shown.dataset.row);
    const code = button.dataset.code === undefined ? null : Number(button.dataset.code);
    try {
      const response = await fetch(button.dataset.action, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ row, code }),
      });
      if (response.status === 404) throw new Error();
      const answer = await response.json();
      work.innerHTML = answer.work;
      message.textContent = answer.message;
      work.querySelector("h2").focus({ preventScroll: true });
      document.getElementById("asked").scrollIntoView({ block: "nearest" });
    } catch {
      message.textContent =
        "The program that made this page does not answer. Nothing that was stored is lost: run the " +
        "same command again, and open the address that it prints.";
    }
    busy = false;
  };

  work.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-action]");
    if (button) ask(button);
  });
  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    if (key.length !== 1) return;
    const button = work.querySelector(`button[aria-keyshortcuts="${CSS.escape(key)}"]`);
    if (button) {
      event.preventDefault();
      ask(button);
    }
  });
})();
