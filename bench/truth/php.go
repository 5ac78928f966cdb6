package main

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

//go:embed files/basket.php
var basketPHP string

const phpConfig = `[global]
daemonize = no
error_log = %[1]s/php.log
[www]
listen = %[1]s/php.sock
user = root
group = root
pm = static
pm.max_children = 8
`

// phpLocation hands scripts to php-fpm.
const phpLocation = `location ~ \.php$ { fastcgi_pass unix:%[1]s/php.sock; fastcgi_param SCRIPT_FILENAME %[1]s$fastcgi_script_name; fastcgi_param REQUEST_METHOD $request_method; fastcgi_param QUERY_STRING $query_string; }`

func phpShop() testCase {
	return testCase{
		name:    "nginx-php-fpm",
		truth:   "nginx hands pages to eight php-fpm processes, 12 at once, six times a second. Bursts spend the quota early; the mean use is about half of the limit.",
		limit:   0.8,
		causes:  []string{"burst", "pool"},
		guilty:  []string{"php-fpm"},
		suffers: []string{"php-fpm", "nginx"},
		needs:   []need{{"nginx", "nginx-light"}, {"/usr/sbin/php-fpm8.2", "php8.2-fpm"}},
		start:   startPHP,
	}
}

func startPHP(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	if _, err := s.file("basket.php", basketPHP); err != nil {
		return service{}, err
	}
	php, err := s.file("php.conf", fmt.Sprintf(phpConfig, s.dir))
	if err != nil {
		return service{}, err
	}
	nginx, err := s.file("nginx.conf", fmt.Sprintf(nginxConfig, s.dir, port, fmt.Sprintf(phpLocation, s.dir)))
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"/usr/sbin/php-fpm8.2", "--nodaemonize", "--allow-to-run-as-root", "--fpm-config", php}}); err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"nginx", "-c", nginx, "-e", s.dir + "/error.log"}}); err != nil {
		return service{}, err
	}
	page := request{Protocol: protocolHTTP, Text: "http://" + addr + "/basket.php"}
	return service{
		streams: []loadgen.Stream{{Name: "page", PerSecond: 72, Burst: 12}}, requests: []request{page}, connections: 16,
	}, s.ready(ctx, page)
}

//go:embed files/quote.php
var quotePHP string

func phpTiny() testCase {
	return testCase{
		name:    "php-tiny",
		truth:   "PHP's own web server, one process with one thread, answers four requests a second at equal gaps. Each needs about 25 ms of one CPU, more than the 15 ms that a period's quota is. It never runs wider than one CPU, and its mean use is below the limit.",
		limit:   0.15,
		causes:  []string{"tiny-limit"},
		guilty:  []string{"php"},
		suffers: []string{"php"},
		needs:   []need{{"/usr/bin/php8.2", "php8.2-cli"}},
		start:   startPHPServer,
	}
}

func startPHPServer(ctx context.Context, s *stage) (service, error) {
	addr, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	if _, err := s.file("quote.php", quotePHP); err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"/usr/bin/php8.2", "-S", addr, "-t", s.dir}}); err != nil {
		return service{}, err
	}
	page := request{Protocol: protocolHTTP, Text: "http://" + addr + "/quote.php"}
	return service{
		streams: []loadgen.Stream{{Name: "page", PerSecond: 4, Regular: true}}, requests: []request{page},
	}, s.ready(ctx, page)
}
