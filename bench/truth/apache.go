package main

import (
	"context"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

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
		suffers: []string{"apache"},
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
