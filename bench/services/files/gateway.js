// A gateway: for each page it asks two services at once and writes what they answer into the page.
const http = require("http");
const [, , port, orders, catalogue] = process.argv;
const agent = new http.Agent({ keepAlive: true });

function ask(port, path) {
  return new Promise((done, failed) => {
    http.get({ host: "127.0.0.1", port, path, agent }, (answer) => {
      let text = "";
      answer.on("data", (part) => (text += part));
      answer.on("end", () => (answer.statusCode === 200 ? done(JSON.parse(text)) : failed(new Error(path + ": " + answer.statusCode))));
    }).on("error", failed);
  });
}

http.createServer(async (request, response) => {
  try {
    const [mine, items] = await Promise.all([ask(orders, "/"), ask(catalogue, "/")]);
    const rows = mine.map((o) => `<tr><td>${o.id}</td><td>${o.item}</td><td>${o.price.toFixed(2)}</td></tr>`);
    const list = items.map((i) => `<li>${i.name}: ${i.tags.join(", ")}</li>`);
    response.end(`<table>${rows.join("\n")}</table><ul>${list.join("\n")}</ul>`);
  } catch (e) {
    response.statusCode = 502;
    response.end(String(e));
  }
}).listen(Number(port), "127.0.0.1");
