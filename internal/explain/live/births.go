package live

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool/identify"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

const (
	// titleAfter is how long after its first event a process is asked for its title, which it sets once it runs.
	titleAfter = 20 * time.Millisecond
	// maxTitles bounds how many processes are asked, at some 20 us each, and how many wait for it.
	maxTitles = 256
)

// births reads the titles of processes that begin during a recording and keep the name of one that was there: they are
// forks, and only a title tells their part.
type births struct {
	there   map[string]bool // names of the processes at the start
	waiting []birth         // in the order of time
	found   []recording.Process
	asked   int
	title   func(pid int) (comm string, cmdline []string, err error)
}

type birth struct {
	tgid uint32
	at   int64 // when to ask
}

func newBirths(h *recording.Header) births {
	b := births{there: map[string]bool{}, title: identify.Title}
	for _, t := range h.Threads {
		if t.TID == t.TGID {
			b.there[t.Comm] = true
		}
	}
	return b
}

// look takes the next event.
func (b *births) look(e *recording.Event) {
	for len(b.waiting) > 0 && b.waiting[0].at <= e.AtNS {
		b.ask(b.waiting[0].tgid)
		b.waiting = b.waiting[1:]
	}
	if e.Kind == recording.Name && e.Thread == e.TGID && b.there[e.Text] && len(b.waiting) < maxTitles {
		b.waiting = append(b.waiting, birth{e.TGID, e.AtNS + titleAfter.Nanoseconds()})
	}
}

// ask keeps a process's title, if it still lives and has kept its name.
func (b *births) ask(tgid uint32) {
	if b.asked == maxTitles {
		return
	}
	b.asked++
	comm, cmdline, err := b.title(int(tgid))
	if err != nil || !b.there[comm] {
		return // it ended, or became another program, whose name tells its part
	}
	b.found = append(b.found, recording.Process{TGID: tgid, Comm: comm, Cmdline: cmdline})
}
