package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/roles"
	"github.com/unthrottle/unthrottle/internal/explain/sampled/sampler"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool/identify"
	"github.com/unthrottle/unthrottle/internal/text"
)

// cannotSample lists what samples never show.
var cannotSample = []string{
	"which thread held a CPU while another one waited: samples know how long each ran and waited, not for whom",
	"requests and their responses, delays of single wake-ups, who wakes whom: only the kernel's scheduling events show them",
	"debts of long system calls, expired slices, the limit of real-time threads: counters do not tell them from other stops",
}

// MostLook is the longest look.
const MostLook = 10 * time.Minute

// LookOptions of Look.
type LookOptions struct {
	// PID is a process of the container. For is how long to look at most, Least how long at least.
	PID        int
	For, Least time.Duration
	// Share is the share of the limit that looking may use.
	Share float64
}

// Look explains the container of a process from samples of counters and of threads' own files, which needs no rights.
func Look(ctx context.Context, o LookOptions) (diagnose.Explanation, error) {
	known := newNames(facts{})
	found, err := sampler.Look(ctx, sampler.Options{PID: o.PID, For: o.For, Least: o.Least, Share: o.Share,
		Pools: func(threads []roles.Seen, processes map[uint32]roles.Process) func(tid, pid uint32, comm string) string {
			known.roles = roles.Of(threads, processes, known.fold.Of, builtByGo)
			return known.pool
		}})
	if err != nil {
		return diagnose.Explanation{}, err
	}
	for i := range found.Figures.Pools {
		p := &found.Figures.Pools[i]
		p.Helper = p.Helper || known.helps(p.Name)
	}
	e := found.Figures.Explain()
	e.EndedEarly, e.LimitChanges = found.Ended, found.LimitChanges
	if len(e.LimitChanges) > 0 {
		e.Undecided("a limit changed while it was looked at")
	}
	processes, notes := lookedAt(known, e.Pools[:min(len(e.Pools), maxIdentified)])
	advise(&e, threadpool.Known(), known, processes, found.CPUsAllowed)
	e.NotMeasured = append(e.NotMeasured, fmt.Sprintf("scheduling events: %d samples of up to %s in %s tell the figures, at a cost of "+
		"%s of CPU time", found.Samples, text.Count(found.Threads, "thread"), text.Duration(found.Took), text.Duration(found.Cost)))
	e.NotMeasured = append(append(e.NotMeasured, cannotSample...), notes...)
	e.OwnRemedies = ownRemedies(&e, found)
	return e, nil
}

// helps tells whether a pool is known by its name to work for another one's requests, or for the runtime.
func (n *names) helps(pool string) bool {
	for _, t := range n.first[pool] {
		if rows := threadpool.Known().Match(t.comm, nil); len(rows) > 0 && (rows[0].Helps != "" || rows[0].Class == threadpool.VM) {
			return true
		}
	}
	return false
}

// builtByGo tells whether Go built a process's program: any of its threads then runs anything. One that cannot be read is taken for none.
func builtByGo(pid uint32) bool {
	p, err := identify.Look(int(pid))
	return err == nil && p.Go != ""
}

// maxIdentified bounds the pools of which the library is looked up, those with most CPU time: to read an executable costs more than
// many samples.
const maxIdentified = 4

// lookedAt reads what a process of each pool shows of its libraries. Another user's show little, which is no error.
func lookedAt(known *names, pools []diagnose.PoolUse) (processes map[uint32]threadpool.Process, notes []string) {
	processes = map[uint32]threadpool.Process{}
	refused := 0
	for _, pool := range pools {
		t, ok := known.of(pool, nil)
		if _, again := processes[t.tgid]; !ok || again {
			continue
		}
		p, err := identify.Look(int(t.tgid))
		switch {
		case errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrProcessDone):
			continue
		case errors.Is(err, os.ErrPermission):
			refused++
		case err != nil:
			notes = append(notes, fmt.Sprintf("process %d: %v", t.tgid, err))
		}
		processes[t.tgid] = p
	}
	if refused > 0 {
		notes = append(notes, fmt.Sprintf("libraries of %s: their files are another user's, so that pools are known by names alone",
			text.CountOf(refused, "process", "processes")))
	}
	return processes, notes
}
