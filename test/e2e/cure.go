package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// cure changes a container of Docker, and has Docker change it too.
func (s *suite) cure(d *docker) {
	path := "/docker/" + d.cart1
	kernel := newSettings(path)
	before := kernel.read()
	args := func(args ...string) []string {
		return append(args, "--json", "--scope", path, "--state-dir", filepath.Join(s.dir, "state"))
	}

	var fixed struct {
		Verdict string
		Kept    bool
		Writes  []struct{ Path, File, Before, After string }
	}
	// Work that never rests has "more CPU" for an answer: that is asked for here.
	err := s.decode(&fixed, d.env, args("fix", "docker:shop-cart-1", "--remedy", "raise", "--to", "0.2", "--may",
		"raise", "--yes", "--for", "2s")...)
	switch {
	case err != nil:
	case !fixed.Kept:
		err = fmt.Errorf("verdict %q: not kept", fixed.Verdict)
	case len(fixed.Writes) != 1 || fixed.Writes[0].Path != path || kernel.quota() != "20000":
		err = fmt.Errorf("writes %+v, and the kernel has the quota %s", fixed.Writes, kernel.quota())
	}
	s.check(fmt.Sprintf("docker: fix raises the limit, judges it (%s), and the kernel has it", fixed.Verdict), err)

	_, err = s.run(nil, d.env, "docker", "update", "--cpus", "0.15", "shop-cart-1")
	status, failed := s.run(nil, d.env, s.exe, "status", "--state-dir", filepath.Join(s.dir, "state"))
	err = errors.Join(err, failed)
	if !strings.Contains(status.out, "drift: "+path) {
		err = errors.Join(err, fmt.Errorf("status says:\n%s", status.out))
	}
	s.check("docker: docker update --cpus is noticed as drift", err)
	var restored struct {
		Skipped []struct{ Path, File, Why string }
	}
	err = s.decode(&restored, d.env, args("restore")...)
	if err == nil && (len(restored.Skipped) != 1 || restored.Skipped[0].Path != path) {
		err = fmt.Errorf("skipped: %+v", restored.Skipped)
	}
	s.check("docker: and restore leaves what Docker set", errors.Join(err, equal("the quota", kernel.quota(), "15000")))

	_, err = s.run(nil, d.env, "docker", "update", "--cpus", "0.1", "shop-cart-1")
	s.check("docker: docker update --cpus 0.1 makes it as it was", errors.Join(err, equal("settings", kernel.read(), before)))

	// Work that rests has time to save up; for work that never does, apply refuses a burst.
	path = "/docker/" + d.cart2
	kernel = newSettings(path)
	before = kernel.read()
	err = s.decode(nil, d.env, args("apply", "docker:shop-cart-2", "--remedy", "burst", "--burst", "10ms")...)
	if err == nil && kernel.read() == before {
		err = errors.New("the kernel has no burst")
	}
	s.check("docker: apply burst, and the kernel has it", err)
	err = s.decode(nil, d.env, args("restore")...)
	s.check("docker: restore puts it back byte for byte", errors.Join(err, equal("settings", kernel.read(), before)))
}

// decode runs the program and reads its JSON.
func (s *suite) decode(to any, env []string, args ...string) error {
	got, err := s.run(nil, env, s.exe, args...)
	if got.code == 1 { // still stopped above the bound: a verdict on the load, not on us
		err = nil
	}
	if err == nil && to != nil {
		err = json.Unmarshal([]byte(got.out), to)
	}
	return err
}

// together looks at all runtimes at once.
func (s *suite) together() {
	table, err := s.run(nil, nil, s.exe, "ls", "--for", "500ms")
	for _, name := range []string{"shop-cart-1", "shop-cart-2", "mail", "shop/cart-0/app", "batch", "depot/crate-0/app", "night"} {
		if !strings.Contains(table.out, "\n"+name+" ") {
			err = errors.Join(err, fmt.Errorf("no line of ls begins with %s", name))
		}
	}
	s.check("together: ls has a line for each, by name, with nothing to lead it there", err)
}
