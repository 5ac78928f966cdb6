// A server of small answers, and of logins that hash a password on libuv's workers.
const http = require('http'), crypto = require('crypto');
http.createServer((request, response) => {
  if (request.url !== '/login') return response.end('hello\n');
  crypto.pbkdf2('password', 'salt', 120000, 32, 'sha256', () => response.end('welcome\n'));
}).listen(Number(process.argv[2]), '127.0.0.1');
