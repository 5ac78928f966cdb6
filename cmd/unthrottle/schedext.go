package main

import (
	"os"
	"sync"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/widthcap/scx"
)

// schedExt says whether this host can narrow by sched_ext. What can be read decides first: the scheduler's own test reads
// the kernel's types, which takes long.
var schedExt = sync.OnceValue(func() hoststate.SchedExt {
	kernel := features.ReadKernel(infile.Root("/"), features.Unknown, features.Unknown)
	if can, why := remedy.SchedExtHere(kernel, os.Geteuid() == 0); !can {
		return hoststate.SchedExt{Why: why}
	}
	if kernel.SchedExtScheduler != "" {
		return hoststate.SchedExt{Can: true} // it is ours
	}
	if err := scx.Supported(); err != nil {
		return hoststate.SchedExt{Why: err.Error()}
	}
	return hoststate.SchedExt{Can: true}
})
