package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// hardNode is what makes a node hard, by a word of the kernel's command line, and what the probe's programs need and do not have.
type hardNode struct {
	word string
	// lacks is what `check` names as the reason that nothing can be recorded; "": it can.
	lacks string
	// make changes the node as the word says, where the kernel does not.
	make func(*suite) error
}

// hardNodes are the nodes that clouds and distributions have hardened. Words that begin with e2e are ours.
var hardNodes = []hardNode{
	{word: "e2e.plain"},
	{word: "lockdown=integrity"},
	{word: "lockdown=confidentiality", lacks: "lockdown"},
	{word: "sysctl.kernel.perf_event_paranoid=3"},
	{word: "sysctl.kernel.unprivileged_bpf_disabled=2"},
	{word: "sysctl.kernel.kptr_restrict=2", lacks: "kptr_restrict"},
	{word: "e2e.no-btf", lacks: "BTF", make: func(s *suite) error { return s.mount("tmpfs", "/sys/kernel/btf") }},
	// As on systems whose root is an image: all but /var, /run and /tmp is read-only.
	{word: "ro systemd.volatile=state", make: func(*suite) error {
		if err := os.WriteFile("/etc/written", nil, 0o600); !errors.Is(err, syscall.EROFS) {
			return fmt.Errorf("the root is not read-only: writing /etc/written: %v", err)
		}
		return nil
	}},
}

func (s *suite) mount(kind, dir string) error {
	_, err := s.run(nil, nil, "mount", "-t", kind, kind, dir)
	return err
}

// onHardNode checks what is left of unthrottle on the node that the kernel's command line names.
func (s *suite) onHardNode() {
	words, err := os.ReadFile("/proc/cmdline")
	var node hardNode
	for _, n := range hardNodes {
		if strings.Contains(" "+strings.TrimSpace(string(words))+" ", " "+n.word+" ") {
			node = n
		}
	}
	if node.word == "" {
		err = errors.Join(err, errors.New("the kernel's command line names none of the nodes"))
	}
	title := "hard: " + node.word + ": "
	if s.check(title+"the node is", err) != nil {
		return
	}
	service, err := s.writeAgentUnit("version: 1\nmode: observe\nlisten: 127.0.0.1:9469\n")
	if err == nil && node.make != nil {
		err = node.make(s)
	}
	if s.check(title+"a throttled unit", errors.Join(err, s.startBurner(burner))) != nil {
		return
	}
	cgroup := "/system.slice/" + burner
	s.foundUnitByCounters(title, cgroup)
	got, err := s.run(nil, nil, s.exe, "check")
	want := "the probe loads"
	if node.lacks != "" {
		want = node.lacks
	}
	s.check(title+"check says what can be recorded", errors.Join(err, contains(got.out, want)))
	var told struct {
		Stopped *float64 `json:"stopped_seconds"`
	}
	if node.lacks == "" {
		err = s.unthrottle(&told, "explain", burner, "--for", "5s")
		if err == nil && (told.Stopped == nil || *told.Stopped <= 0) {
			err = fmt.Errorf("stopped %v s", told.Stopped)
		}
	} else { // it goes by counters
		got, _ = s.run(nil, nil, s.exe, "explain", burner, "--for", "5s")
		err = contains(got.out+got.errors, node.lacks)
	}
	s.check(title+"explain records, or goes by counters and says why", err)
	err = s.unthrottle(nil, "apply", burner, "--remedy", "raise", "--to", "0.5")
	s.check(title+"a remedy is applied and undone", errors.Join(err, equal("quota", newSettings(cgroup).quota(), "25000"),
		s.unthrottle(nil, "restore"), equal("quota", newSettings(cgroup).quota(), "10000")))

	a := &agent{address: "127.0.0.1:9469"}
	err = s.systemctl("start", service)
	if err == nil {
		err = s.counted(a, service, cgroup)
	}
	if err == nil && node.lacks != "" {
		err = contains(s.log(service), node.lacks)
	}
	s.check(title+"the agent counts, and says what it lacks", errors.Join(err, equal("restarts", s.property(service, "NRestarts"), "0"),
		equal("state", s.property(service, "ActiveState"), "active")))
}
