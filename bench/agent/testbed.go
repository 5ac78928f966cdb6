package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
)

// namePrefix starts the names of the benchmark's sandbox and folder.
const namePrefix = "unthrottle-bench-"

// quota of each cgroup: the least that the kernel takes, so that little work stops it.
var quota = cgroup.Limit{Quota: cgroup.MinQuota, Period: cgroup.DefaultPeriod}

// testbed is the sandbox of one scenario, in all hierarchies that have containers, and a folder.
type testbed struct {
	sandbox *sandbox.Sandbox
	groups  []*sandbox.Group
	top     string // the sandbox's cgroup
	dir     string
}

// newTestbed makes n cgroups with a quota.
func newTestbed(n int) (*testbed, error) {
	h, err := cgroup.Open("/proc")
	if err != nil {
		return nil, err
	}
	box, err := sandbox.Open(sandbox.Options{Host: h, Prefix: namePrefix, Fair: true, Accounting: true})
	if err != nil {
		return nil, err
	}
	for _, note := range box.Leftovers.Notes() {
		fmt.Fprintln(os.Stderr, "bench:", note)
	}
	b := &testbed{sandbox: box, top: box.Top().At().Path}
	if err := b.fill(n); err != nil {
		return nil, errors.Join(err, b.remove())
	}
	return b, nil
}

func (b *testbed) fill(n int) (err error) {
	if b.dir, err = os.MkdirTemp("", namePrefix); err != nil {
		return err
	}
	for i := range n {
		g, err := b.sandbox.Group(groupName(i))
		if err != nil {
			return err
		}
		b.groups = append(b.groups, g)
		if err := g.SetLimit(quota); err != nil {
			return err
		}
	}
	return nil
}

// groupName is the name of the cgroup number i below the top.
func groupName(i int) string { return fmt.Sprintf("c%04d", i) }

// occupy puts a sleeping process into each cgroup: the kubelet or a runtime would soon remove an empty one.
func (b *testbed) occupy(life time.Duration) ([]*child, error) {
	var sleepers []*child
	for _, g := range b.groups {
		c, err := start("sleeper", "sleep", strconv.Itoa(int(life.Seconds())))
		if err != nil {
			return sleepers, err
		}
		sleepers = append(sleepers, c)
		if err := g.Attach(c.cmd.Process.Pid); err != nil {
			return sleepers, err
		}
	}
	return sleepers, nil
}

// remove removes the cgroups, whose processes must have ended, and the folder.
func (b *testbed) remove() error {
	if b == nil {
		return nil
	}
	err := b.sandbox.Remove()
	if b.dir != "" {
		err = errors.Join(err, os.RemoveAll(b.dir))
	}
	return err
}
