package apply

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

const (
	whyNoPod    = "gone: the pod, or its container, no longer exists"
	whyOtherPod = "another pod has this name now"
	// lowerLooks is how often a kubelet is looked at that lowers a limit: the spec has it already, and nothing fails if
	// it is slow.
	lowerLooks = 10
)

var (
	// errNoPods: a pod is to be touched and there is nothing to do it with.
	errNoPods = errors.New("pods cannot be resized from here: run this in the agent's container, " +
		"with the chart's resize.enabled")
	// errSlow: the kubelet does not make a limit true.
	errSlow = errors.New("the kubelet has not done it in half a minute")
)

// podCPU is the CPU limit of a container in its pod's spec. It outlives the container's cgroup, and the machine's boot.
type podCPU struct{ inCgroup }

func (podCPU) normalise(c change.Change) (change.Change, error) {
	if c.File != podresize.Setting || !podresize.IsName(c.Unit) || c.Path == "" || c.Op != change.OpSet {
		return c, fmt.Errorf("%.80q of pod %.200q is no limit that can be resized", c.File, c.Unit)
	}
	c.Controller = ""
	return c, nil
}

func (podCPU) possible(_ context.Context, c change.Change) error {
	_, err := podresize.Parse(c.To)
	return err
}

// look reads the limit, and the pod's own state.
func (p podCPU) look(ctx context.Context, k change.Key) (podresize.CPU, error) {
	if p.Pods == nil {
		return podresize.CPU{}, fmt.Errorf("%s: %w", k, errNoPods)
	}
	c, err := p.Pods.Read(ctx, k.Unit)
	if err != nil {
		return c, fmt.Errorf("%s: %w", k, err)
	}
	return c, nil
}

func (p podCPU) read(ctx context.Context, k change.Key) (string, error) {
	c, err := p.look(ctx, k)
	return c.Limit.String(), err
}

// id tells the pod from a later one of the same name.
func (p podCPU) id(k change.Key) (uint64, error) {
	c, err := p.look(context.Background(), k)
	if err != nil {
		return 0, err
	}
	h := fnv.New64a()
	h.Write([]byte(c.UID))
	return h.Sum64(), nil
}

func (p podCPU) identity(of journal.Setting, _ uint64) (why string, err error) {
	id, err := p.id(of.Key())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return whyNoPod, nil
	case err != nil:
		return "", err
	case of.ID != id:
		return whyOtherPod, nil
	}
	return "", nil
}

func (p podCPU) exists(of journal.Setting) (bool, error) {
	why, err := p.identity(of, 0)
	return why == "" && err == nil, err
}

// write resizes, and waits until the kubelet and the kernel have the limit. A lower one is the kubelet's business once
// the spec has it; a larger one that does not come is an error.
func (p podCPU) write(ctx context.Context, c change.Change) error {
	from, err := podresize.Parse(c.From)
	if err != nil {
		return err
	}
	to, err := podresize.Parse(c.To)
	if err != nil {
		return err
	}
	if p.Pods == nil {
		return fmt.Errorf("%s: %w", c.Key(), errNoPods)
	}
	if err := p.Pods.Write(ctx, c.Unit, from, to); err != nil {
		return fmt.Errorf("%s: %w", c.Key(), err)
	}
	err = errSlow
	for n := 1; errors.Is(err, errSlow) && (to > from || n <= lowerLooks) && p.Pods.Wait(ctx, n); n++ {
		err = p.agree(ctx, c, to)
	}
	switch {
	case to <= from || err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%s: %w", c.Key(), err)
}

// agree returns nil once spec, kubelet and kernel have the limit, and errSlow while they do not yet.
func (p podCPU) agree(ctx context.Context, c change.Change, to podresize.Milli) error {
	now, err := p.look(ctx, c.Key())
	if err != nil {
		return err
	}
	if done, err := now.Done(to); err != nil {
		return err
	} else if !done || !p.inKernel(c.Path, now.ID, to) {
		return errSlow
	}
	return nil
}

// inKernel tells whether the cgroup of a pod's container has a limit. It is true where there is no such cgroup, as
// nothing contradicts the kubelet then.
func (p podCPU) inKernel(pod, id string, limit podresize.Milli) bool {
	children, err := p.FS.Children(cgroup.CPU, pod)
	if err != nil || id == "" {
		return true
	}
	for _, path := range children {
		if !strings.Contains(cgroup.Base(path), id) {
			continue
		}
		l, err := cgroup.ReadLimit(p.FS, path)
		cpus, limited := l.Bound()
		return err != nil || limited && podresize.Near(cpus, limit.CPUs())
	}
	return true
}

func (podCPU) traits() traits { return traits{valued: true, stale: true, lasting: true} }
