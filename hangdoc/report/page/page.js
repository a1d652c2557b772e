"use strict";
// Everything can be read without this: it sorts tables, copies commands and opens what is folded for the printer.
(() => {
  const say = document.createElement("p");
  say.className = "said";
  say.setAttribute("role", "status");
  document.body.append(say);

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return "";
    return cell.dataset.order === undefined ? cell.textContent.trim() : Number(cell.dataset.order);
  };

  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a.localeCompare(b, "en", { numeric: true });
  };

  const sort = (table, column, heading) => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => {
      const order = compare(valueOf(a, column), valueOf(b, column));
      return down ? -order : order;
    });
    body.append(...rows);
    say.textContent = `sorted by ${heading.textContent}, ${down ? "descending" : "ascending"}`;
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      if (!heading.textContent) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, column, heading));
      heading.append(button);
    });
  }

  for (const command of document.querySelectorAll("code.command")) {
    if (!navigator.clipboard) break;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy ${command.textContent}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        button.textContent = "Copied";
        say.textContent = `copied ${command.textContent}`;
      } catch {
        const range = document.createRange();
        range.selectNodeContents(command);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
      }
    });
    command.after(button);
  }

  const opened = [];
  addEventListener("beforeprint", () => {
    // Not the table of explanations: its first reasons are there, and the others would fill twenty pages.
    for (const one of document.querySelectorAll("details:not([open]):not(td > *)")) {
      one.open = true;
      opened.push(one);
    }
  });
  addEventListener("afterprint", () => {
    for (const one of opened.splice(0)) one.open = false;
  });
})();
