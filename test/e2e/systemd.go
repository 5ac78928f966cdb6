package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// burner is a unit that computes all the time below a limit, as systemd-run makes it.
const (
	burner       = "e2e-burner.service"
	burnerQuota  = "20%"
	burnerPeriod = "50ms"
)

// spin is a program that computes for ever.
var spin = []string{"busybox", "sh", "-c", loop}

// startBurner starts the burner, or another unit like it.
func (s *suite) startBurner(unit string, flags ...string) error {
	_, err := s.run(nil, nil, "systemd-run", slices.Concat([]string{"--unit=" + unit, "-p", "CPUQuota=" + burnerQuota,
		"-p", "CPUQuotaPeriodSec=" + burnerPeriod}, flags, spin)...)
	return err
}

// onSystemd runs the checks beside a systemd that runs, without Kubernetes.
func (s *suite) onSystemd() {
	if s.check("systemd: a unit with CPUQuota="+burnerQuota+" and CPUQuotaPeriodSec="+burnerPeriod+" runs", s.startBurner(burner)) != nil {
		return
	}
	cgroup := "/system.slice/" + burner
	s.foundUnitByCounters("systemd: ", cgroup)
	s.explainedUnit()
	s.raisedUnit(cgroup)
	s.burstUnit(cgroup)
	s.pinnedUnit(cgroup)
	s.userScope()
	s.confinedSystem()
	s.privileges(cgroup)
	s.agentUnit(cgroup)
}

// agentCapabilities are what the tier cure has, and what the probe lacks without each, as check says; "": nothing.
var agentCapabilities = []struct{ name, lost string }{{"CAP_BPF", "explain, forecast, fix"}, {"CAP_PERFMON", "explain, forecast, fix"},
	{"CAP_SYSLOG", "explain, forecast, fix"}, {"CAP_SYS_PTRACE", "names of libraries"}, {"CAP_SYS_NICE", "pin --realtime"}}

// privileges takes one capability after the other away.
func (s *suite) privileges(cgroup string) {
	with := func(capabilities []string, args ...string) (string, error) {
		got, err := s.run(nil, nil, "systemd-run", slices.Concat([]string{"--pipe", "--wait", "--quiet", "-p", "NoNewPrivileges=yes",
			"-p", "CapabilityBoundingSet=" + strings.Join(capabilities, " "), s.exe}, args)...)
		return got.out, err
	}
	var all []string
	for _, c := range agentCapabilities {
		all = append(all, c.name)
	}
	got, err := with(all, "check")
	s.check("privileges: with the agent's capabilities the probe loads", errors.Join(err, contains(got, "all that unthrottle uses")))
	for i, c := range agentCapabilities {
		got, err := with(slices.Delete(slices.Clone(all), i, i+1), "check")
		s.check("privileges: without "+c.name+" check names what is lost: "+c.lost,
			errors.Join(err, contains(got, "without "+c.name), contains(got, c.lost)))
	}
	before := newSettings(cgroup).read()
	narrow := []string{"apply", burner, "--remedy", "narrow", "--via", "sched_ext"}
	if scheduler() == noScheduler {
		_, err = s.run(nil, nil, s.exe, narrow...)
		s.check("privileges: narrow by sched_ext is refused on this kernel, with the reason", wants(err, "the kernel has no sched_ext"))
		return
	}
	_, err = with(all, narrow...)
	s.check("privileges: narrow by sched_ext wants CAP_SYS_ADMIN, and says so",
		errors.Join(wants(err, "CAP_SYS_ADMIN"), equal("settings", newSettings(cgroup).read(), before)))
	_, err = s.run(nil, nil, s.exe, narrow...)
	s.check("privileges: root narrows by sched_ext", errors.Join(err, contains(scheduler(), "enabled unthrottle")))
	err = s.unthrottle(nil, "restore")
	s.check("privileges: restore ends the scheduler",
		errors.Join(err, eventually(func() error { return equal("scheduler", scheduler(), "disabled") }),
			equal("settings", newSettings(cgroup).read(), before)))
}

// foundUnitByCounters checks that ls knows the unit.
func (s *suite) foundUnitByCounters(title, cgroup string) {
	var unit listed
	err := eventually(func() error {
		all, _, err := s.ls()
		unit = all[cgroup]
		if err == nil && (unit.Throttled == nil || *unit.Throttled == 0) {
			err = errors.New("it is not throttled")
		}
		return err
	})
	limit := 0.0
	if unit.Limit != nil {
		limit = *unit.Limit
	}
	s.check(title+"ls has it by its name, with its limit, throttled", errors.Join(err, equal("name", unit.Name, burner),
		equal("runtime", value(unit.Runtime), "systemd"), equal("limit", fmt.Sprint(limit), "0.2")))
}

// explainedUnit checks that explain knows why it is stopped.
func (s *suite) explainedUnit() {
	var told struct {
		Cause   *string
		Stopped *float64 `json:"stopped_seconds"`
	}
	err := s.unthrottle(&told, "explain", burner, "--for", "5s")
	if err == nil && (told.Cause == nil || told.Stopped == nil || *told.Stopped <= 0) {
		err = fmt.Errorf("cause %s, stopped %v s", value(told.Cause), told.Stopped)
	}
	s.check(fmt.Sprintf("systemd: explain names the cause (%s)", value(told.Cause)), err)
}

// unthrottle runs a command here and reads its JSON. Exit code 1 is a verdict on the load.
func (s *suite) unthrottle(to any, args ...string) error {
	got, err := s.run(nil, nil, s.exe, append(args, "--json")...)
	if got.code == 1 && strings.HasPrefix(strings.TrimSpace(got.out), "{") {
		err = nil
	}
	if err == nil && to != nil {
		err = json.Unmarshal([]byte(got.out), to)
	}
	return err
}

// property is a unit's, as systemd has it.
func (s *suite) property(unit, name string) string {
	got, _ := s.ask(nil, "systemctl", "show", "-P", name, unit)
	return got
}

// raisedUnit changes the limit through systemd: a reload and a new systemd keep it, restore ends it.
func (s *suite) raisedUnit(cgroup string) {
	before := newSettings(cgroup).read()
	want := func() error {
		return errors.Join(equal("quota", newSettings(cgroup).quota(), "25000"),
			equal("CPUQuotaPerSecUSec", s.property(burner, "CPUQuotaPerSecUSec"), "500ms"))
	}
	s.check("systemd: raise goes through the unit's properties, in its own period",
		errors.Join(s.unthrottle(nil, "apply", burner, "--remedy", "raise", "--to", "0.5"), want()))
	s.check("systemd: a daemon-reload keeps it", errors.Join(s.systemctl("daemon-reload"), want()))
	s.check("systemd: a daemon-reexec keeps it", errors.Join(s.systemctl("daemon-reexec"), want()))
	s.check("systemd: a restart of the unit keeps it", errors.Join(s.systemctl("restart", burner), want()))
	s.check("systemd: restore ends it byte for byte",
		errors.Join(s.unthrottle(nil, "restore"), equal("settings", newSettings(cgroup).read(), before),
			equal("CPUQuotaPerSecUSec", s.property(burner, "CPUQuotaPerSecUSec"), "200ms"), nothing(s.dropIns())))
}

// dropIns are what is left of properties that were set until the next boot.
func (s *suite) dropIns() []string {
	found, _ := filepath.Glob("/run/systemd/system.control/*.d/*.conf")
	return found
}

// nothing refuses a list that is not empty.
func nothing(left []string) error { return equal("left", strings.Join(left, " "), "") }

// burstUnit writes a file that is no property of a unit.
func (s *suite) burstUnit(cgroup string) {
	before := newSettings(cgroup).read()
	err := s.unthrottle(nil, "apply", burner, "--remedy", "burst", "--burst", "10ms")
	s.check("systemd: a burst, which no property has, is written to the file",
		errors.Join(err, equal("burst", newSettings(cgroup).burst(), "10000")))
	err = s.systemctl("daemon-reload")
	s.check("systemd: a daemon-reload keeps the burst", errors.Join(err, equal("burst", newSettings(cgroup).burst(), "10000")))
	err = s.systemctl("restart", burner)
	got, failed := s.run(nil, nil, s.exe, "status")
	s.check("systemd: a restart of the unit ends the burst, and status says so", errors.Join(err, failed,
		equal("settings", newSettings(cgroup).read(), before), contains(got.out, "cpu.max.burst")))
	s.check("systemd: restore after that", errors.Join(s.unthrottle(nil, "restore"), equal("settings", newSettings(cgroup).read(), before)))
}

// pinnedUnit pins the unit: every other unit gives up its CPU, and gets it again.
func (s *suite) pinnedUnit(cgroup string) {
	before := cpusets()
	err := s.unthrottle(nil, "apply", burner, "--remedy", "pin")
	now := cpusets()
	if err == nil && now[cgroup] == before[cgroup] {
		err = fmt.Errorf("the unit's CPUs are %q", now[cgroup])
	}
	for other, cpus := range now {
		if other != cgroup && !strings.HasPrefix(cgroup, other+"/") && !strings.HasPrefix(other, cgroup+"/") &&
			overlaps(cpus, now[cgroup]) {
			err = errors.Join(err, fmt.Errorf("%s has %s too", other, cpus))
		}
	}
	s.check("systemd: pin gives it a CPU through AllowedCPUs, which no other unit has", errors.Join(err,
		equal("quota", newSettings(cgroup).quota(), "max")))
	s.check("systemd: a daemon-reload keeps the pin", errors.Join(s.systemctl("daemon-reload"), same(now, cpusets())))
	s.check("systemd: restore gives the others their CPUs back",
		errors.Join(s.unthrottle(nil, "restore"), same(before, cpusets()), nothing(s.dropIns())))
}

// cpusets are the CPUs that cgroups may use, by path.
func cpusets() map[string]string {
	all := map[string]string{}
	for _, pattern := range []string{"/*", "/*/*"} {
		found, _ := filepath.Glob("/sys/fs/cgroup" + pattern + "/cpuset.cpus.effective")
		for _, name := range found {
			text, _ := os.ReadFile(name)
			all[strings.TrimPrefix(filepath.Dir(name), "/sys/fs/cgroup")] = strings.TrimSpace(string(text))
		}
	}
	return all
}

// overlaps says that two lists of CPUs, each of single CPUs and ranges, share one.
func overlaps(a, b string) bool {
	in := func(list string) (cpus []int) {
		for _, part := range strings.Split(list, ",") {
			var first, last int
			if n, _ := fmt.Sscanf(part, "%d-%d", &first, &last); n == 1 {
				last = first
			} else if n == 0 {
				continue
			}
			for cpu := first; cpu <= last; cpu++ {
				cpus = append(cpus, cpu)
			}
		}
		return cpus
	}
	return slices.ContainsFunc(in(a), func(cpu int) bool { return slices.Contains(in(b), cpu) })
}

// same compares what cgroups have that are in both.
func same(a, b map[string]string) error {
	var errs []error
	for name, text := range a {
		if now, there := b[name]; there {
			errs = append(errs, equal(name, now, text))
		}
	}
	return errors.Join(errs...)
}

// userScope looks at a scope of a user's systemd, which is another one than the machine's.
func (s *suite) userScope() {
	own := []string{"XDG_RUNTIME_DIR=/run/user/0", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/0/bus"}
	err := s.systemctl("start", "user@0.service")
	if err == nil {
		_, err = s.run(nil, own, "sh", "-c",
			"systemd-run --user --scope --unit=e2e-user -p CPUQuota="+burnerQuota+" "+spin[0]+
				" sh -c '"+loop+"' >/dev/null 2>&1 &")
	}
	const cgroup = "/user.slice/user-0.slice/user@0.service/app.slice/e2e-user.scope"
	if err == nil {
		err = eventually(func() error { return equal("quota", newSettings(cgroup).quota(), "20000") })
	}
	if s.check("systemd: a scope of a user's own systemd has a quota", err) != nil {
		return
	}
	all, _, err := s.ls()
	s.check("systemd: ls has it by its name", errors.Join(err, equal("name", all[cgroup].Name, "e2e-user.scope")))
	before := newSettings(cgroup).read()
	err = s.unthrottle(nil, "apply", "e2e-user.scope", "--remedy", "raise", "--to", "0.5")
	s.check("systemd: raise of it", errors.Join(err, equal("quota", newSettings(cgroup).quota(), "50000")))
	_, err = s.run(nil, own, "systemctl", "--user", "daemon-reload")
	s.check("systemd: the user's daemon-reload leaves it", errors.Join(err, equal("quota", newSettings(cgroup).quota(), "50000")))
	s.check("systemd: restore of it", errors.Join(s.unthrottle(nil, "restore"), equal("settings", newSettings(cgroup).read(), before)))
	_ = s.systemctl("stop", "user@0.service")
}

// confinedSystem puts the machine's own slices on a reserve.
func (s *suite) confinedSystem() {
	before := cpusets()
	err := s.unthrottle(nil, "apply", "--system", "--reserve", "0")
	now := cpusets()
	s.check("systemd: apply --system confines the slices, all but units with limits", errors.Join(err,
		equal("init.scope", now["/init.scope"], "0"), equal("user.slice", now["/user.slice"], "0"),
		equal("journald", now["/system.slice/systemd-journald.service"], "0"),
		equal("burner", now["/system.slice/"+burner], before["/system.slice/"+burner])))
	s.check("systemd: a daemon-reload keeps it", errors.Join(s.systemctl("daemon-reload"), same(now, cpusets())))
	err = s.systemctl("start", "systemd-tmpfiles-clean.service")
	s.check("systemd: restore system gives them back",
		errors.Join(err, s.unthrottle(nil, "restore", "system"), same(before, cpusets()), nothing(s.dropIns())))
}

// agentRules raise the burner's limit while its latency misses an objective. The latency is what latencyOf prints.
const agentRules = `version: 1
mode: apply
listen: 127.0.0.1:9469
rules:
- match: {name: "e2e-burner*"}
  remedy: raise
  to: 0.5
  slo: {objective: "p99<50ms", command: "/var/lib/e2e/latency {since}"}
`

// latencyOf is 100 ms a request below the first limit, else 10 ms, and never the very same twice: that would be an old answer.
const latencyOf = `#!/bin/sh
read -r quota period < /sys/fs/cgroup/system.slice/` + burner + `/cpu.max
[ "$quota" = 10000 ] && ms=100 || ms=10
now=$(date +%N)
i=0; while [ $i -lt 600 ]; do echo $ms.$now$i; i=$((i+1)); done
`

// writeAgentUnit installs the packaged unit with an agent's file, and returns its name.
func (s *suite) writeAgentUnit(config string) (string, error) {
	packaged, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(s.exe)), "packaging", "unthrottle.service"))
	const file = "/run/unthrottle.yaml" // the root may be read-only
	unit := strings.NewReplacer("/usr/bin/unthrottle", s.exe, "/etc/unthrottle.yaml", file).Replace(string(packaged))
	return "unthrottle", errors.Join(err, os.MkdirAll("/run/systemd/system", 0o755), os.WriteFile(file, []byte(config), 0o644),
		os.WriteFile("/run/systemd/system/unthrottle.service", []byte(unit), 0o644), s.systemctl("daemon-reload"))
}

// counted waits until an agent counts the throttled periods of a unit.
func (s *suite) counted(a *agent, service, cgroup string) error {
	err := eventually(func() error {
		page, err := a.page("/metrics")
		return errors.Join(err, contains(page, `unthrottle_container_throttled_periods_total{`), contains(page, `id="`+cgroup+`"`))
	})
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, s.log(service))
	}
	return err
}

// agentUnit runs the agent as the unit that is packaged, with the rights of that.
func (s *suite) agentUnit(cgroup string) {
	before := newSettings(cgroup).read()
	service, err := s.writeAgentUnit(agentRules)
	err = errors.Join(err, os.WriteFile("/var/lib/e2e/latency", []byte(latencyOf), 0o755), s.systemctl("start", service))
	a := &agent{address: "127.0.0.1:9469"}
	if err == nil {
		err = s.counted(a, service, cgroup)
	}
	if s.check("systemd: the packaged unit starts the agent, which counts with its rights", err) != nil {
		return
	}
	raised := func() error {
		return errors.Join(equal("quota", newSettings(cgroup).quota(), "25000"),
			equal("CPUQuotaPerSecUSec", s.property(burner, "CPUQuotaPerSecUSec"), "500ms"))
	}
	err = eventually(raised)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, s.log(service))
	}
	s.check("systemd: its rule is applied through D-Bus", err)
	err = eventually(func() error {
		got, err := s.run(nil, nil, s.exe, "status", "--json")
		return errors.Join(err, contains(got.out, `"better"`))
	})
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, s.log(service))
	}
	s.check("systemd: its trial ends, better by the rule's latency", err)
	s.check("systemd: systemctl reload takes the file again", s.systemctl("reload", service))
	err = s.systemctl("kill", "-s", "KILL", service)
	s.check("systemd: SIGKILL leaves it in force, and systemd starts the next agent", errors.Join(err, raised(),
		eventually(func() error { _, err := a.page("/readyz"); return err })))
	s.check("systemd: restore after a stop", errors.Join(s.systemctl("stop", service), s.unthrottle(nil, "restore"),
		equal("settings", newSettings(cgroup).read(), before), nothing(s.dropIns())))
}
