package main

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

//go:embed files/basket.php
var basketPHP string

const apacheConfig = `ServerRoot %[1]s
ServerName localhost
PidFile %[1]s/apache.pid
ErrorLog %[1]s/apache.log
Listen 127.0.0.1:%[2]s
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule php_module /usr/lib/apache2/modules/libphp8.2.so
User www-data
Group www-data
Mutex file:%[1]s default
DocumentRoot %[1]s
<Directory %[1]s>
  Require all granted
</Directory>
<FilesMatch \.php$>
  SetHandler application/x-httpd-php
</FilesMatch>
StartServers 10
MinSpareServers 10
MaxSpareServers 10
MaxRequestWorkers 10
`

func apacheOneCPU() testCase {
	return testCase{
		name:    "apache-one-cpu",
		truth:   "Ten processes of Apache with mod_php answer pages, eight at once, ten times a second. The limit is 2 CPUs and their cpuset has one: no quota stops them, they wait for each other's CPU.",
		limit:   2,
		causes:  []string{"cpuset"},
		guilty:  []string{"apache2"},
		suffers: []string{"apache2"},
		needs:   []need{{"apache2", "apache2-bin"}, {"/usr/lib/apache2/modules/libphp8.2.so", "libapache2-mod-php8.2"}},
		start:   startApache,
	}
}

func startApache(ctx context.Context, s *stage) (service, error) {
	if err := s.oneCPU(); err != nil {
		return service{}, err
	}
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	if _, err := s.file("basket.php", basketPHP); err != nil {
		return service{}, err
	}
	config, err := s.file("apache.conf", fmt.Sprintf(apacheConfig, s.dir, port))
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"apache2", "-D", "FOREGROUND", "-f", config}}); err != nil {
		return service{}, err
	}
	page := request{Protocol: protocolHTTP, Text: "http://" + addr + "/basket.php"}
	return service{
		streams: []loadgen.Stream{{Name: "page", PerSecond: 80, Burst: 8}}, requests: []request{page}, connections: 8,
	}, s.ready(ctx, page)
}

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
