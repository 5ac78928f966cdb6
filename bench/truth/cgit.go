package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

const cgitLighttpdConfig = `server.modules = ( "mod_setenv", "mod_cgi" )
server.document-root = "/usr/lib/cgit"
server.bind = "127.0.0.1"
server.port = %[2]s
cgi.assign = ( "cgit.cgi" => "" )
setenv.set-environment = ( "CGIT_CONFIG" => "%[1]s/cgitrc" )
`

const cgitConfig = `virtual-root=/cgit.cgi
cache-size=0
snapshots=tar.xz
repo.url=shop
repo.path=%s/shop/.git
`

// cgitHistory makes a repository of the folder shop, with some commits to read.
const cgitHistory = `cd shop; git init -q -b main; git config user.name A; git config user.email a@localhost; git add .; git commit -q -m "All pages"
for i in $(seq 30); do echo "change $i" >> 0.html; git commit -q -a -m "Change $i"; done; git gc -q`

func cgitSnapshots() testCase {
	return testCase{
		name:    "cgit-snapshots",
		truth:   "lighttpd starts a cgit for each of 65 pages a second of a repository, and for 1.5 downloads a second of its snapshot, each compressed by an xz of its own. The compressors spend the quota, the pages wait.",
		limit:   1,
		causes:  []string{"pool", "burst"},
		guilty:  []string{"xz"},
		suffers: []string{"cgit", "lighttpd"},
		needs:   []need{{"lighttpd", "lighttpd"}, {"/usr/lib/cgit/cgit.cgi", "cgit"}, {"git", "git"}, {"xz", "xz-utils"}},
		start:   startCgit,
	}
}

func startCgit(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	if err := os.Mkdir(filepath.Join(s.dir, "shop"), 0o755); err != nil {
		return service{}, err
	}
	const files, size = 12, 40_000
	text := pageOfText(files * size)
	for i := range files {
		if _, err := s.file(fmt.Sprintf("shop/%d.html", i), text[i*size:(i+1)*size]); err != nil {
			return service{}, err
		}
	}
	if err := s.prepare(ctx, program{args: []string{"/bin/sh", "-e", "-c", cgitHistory}}); err != nil {
		return service{}, err
	}
	if _, err := s.file("cgitrc", fmt.Sprintf(cgitConfig, s.dir)); err != nil {
		return service{}, err
	}
	config, err := s.file("lighttpd.conf", fmt.Sprintf(cgitLighttpdConfig, s.dir, port))
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"lighttpd", "-D", "-f", config}}); err != nil {
		return service{}, err
	}
	site := "http://" + addr + "/cgit.cgi/shop/"
	page := request{Protocol: protocolHTTP, Text: site + "log/"}
	snapshot := request{Protocol: protocolHTTP, Text: site + "snapshot/shop-main.tar.xz"}
	return service{
		streams:  []loadgen.Stream{{Name: "page", PerSecond: 65}, {Name: "snapshot", PerSecond: 1.5, Background: true}},
		requests: []request{page, snapshot}, connections: 32,
	}, s.ready(ctx, snapshot)
}
