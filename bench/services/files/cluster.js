// Two processes that share a port and give small answers.
const cluster = require('cluster'), http = require('http');
if (cluster.isPrimary) {
  cluster.fork();
  cluster.fork();
} else {
  http.createServer((_, response) => response.end('hello\n')).listen(Number(process.argv[2]), '127.0.0.1');
}
