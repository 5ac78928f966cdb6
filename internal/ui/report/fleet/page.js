"use strict";
const list = document.getElementById("services");
if (list) {
  const box = document.getElementById("find"), found = document.getElementById("found");
  const services = [...list.tBodies];
  const texts = new Map(services.map(s => [s, s.rows[0].textContent.toLowerCase()]));
  const find = () => {
    const words = box.value.toLowerCase().split(/\s+/);
    for (const s of services) s.hidden = !words.every(w => texts.get(s).includes(w));
    found.value = services.filter(s => !s.hidden).length + " of " + services.length;
  };
  box.addEventListener("input", find);
  box.closest("p").hidden = false;
  find(); // a browser may have kept what was typed

  // A cell's figure; what is no figure is not known.
  const figure = text => text.startsWith("<") ? parseFloat(text.slice(1)) / 2 : parseFloat(text);
  const heads = [...list.tHead.rows[0].cells];
  heads.forEach((head, i) => {
    const figures = head.classList.contains("n");
    const compare = (a, b) => {
      if (!figures) return a.localeCompare(b);
      return (isNaN(a = figure(a)) ? -1 : a) - (isNaN(b = figure(b)) ? -1 : b);
    };
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      const down = was ? was === "ascending" : figures;
      for (const h of heads) h.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const text = s => s.rows[0].cells[i].textContent.trim();
      services.sort((a, b) => (down ? -1 : 1) * compare(text(a), text(b)));
      list.append(...services);
    });
  });
}
