package apply

import (
	"context"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// file is a control file of a cgroup.
type file struct{ inCgroup }

func (f file) read(_ context.Context, k change.Key) (string, error) {
	if f.isWeight(k) {
		return cgroup.ReadWeight(f.FS, k.Path)
	}
	return f.FS.Read(k.Controller, k.Path, k.File)
}

func (f file) write(_ context.Context, c change.Change) error {
	if f.isWeight(c.Key()) {
		return cgroup.WriteWeight(f.FS, c.Path, c.To)
	}
	return f.FS.Write(c.Controller, c.Path, c.File, c.To)
}

// isWeight reports the weight file. Its value "idle" is in a file of its own on the kernel's side.
func (f file) isWeight(k change.Key) bool {
	return k.Controller == cgroup.CPU && k.File == cgroup.WeightFile(f.version(cgroup.CPU))
}

func (file) traits() traits { return traits{valued: true, stale: true} }
