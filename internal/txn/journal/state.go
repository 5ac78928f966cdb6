package journal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// Phase is how far a transaction is.
type Phase string

// The phases.
const (
	// Applying: begun, not finished. If no writer is at work it was interrupted.
	Applying Phase = "applying"
	// OnTrial: everything it wanted was written, and its effect is not judged yet.
	OnTrial Phase = "on trial"
	// InForce: everything it wanted was written.
	InForce Phase = "in force"
	// Releasing: a rollback has begun. If no writer is at work, it was interrupted.
	Releasing Phase = "releasing"
	// Closed: rolled back, or ended otherwise.
	Closed Phase = "closed"
)

// Txn is one transaction as the journal tells it.
type Txn struct {
	Begin
	Phase    Phase
	Released *Release
	Closed   *Close
	Outcome  *Outcome
	// lost are settings that a later transaction found changed by another program: this one holds them no longer.
	lost map[Setting]bool
	// took are settings that this one took over from earlier holders in that way.
	took  []Setting
	lines []int
	// outcomeLine is the last outcome's; 0 (the header's) is none.
	outcomeLine int
}

// allLines are the lines that tell of this transaction itself.
func (t *Txn) allLines() []int {
	if t.outcomeLine == 0 {
		return t.lines
	}
	return append(t.lines[:len(t.lines):len(t.lines)], t.outcomeLine)
}

// Lost reports whether a hold of this transaction is void, because another program changed the setting since.
func (t *Txn) Lost(k Setting) bool { return t.lost[k] }

// Last is what is known of a setting's value: the last write to it.
type Last struct {
	Write Write
	Done  *Done
	lines []int
}

// Ours tells whether a value is one that we left: what was read back, or, where the writer was interrupted between
// the entry and the read-back, what was there before or what was wanted.
func (l Last) Ours(file, value string) bool {
	if l.Done != nil {
		return change.Same(file, value, string(l.Done.Value))
	}
	return change.Same(file, value, string(l.Write.Before)) || change.Same(file, value, string(l.Write.Want)) ||
		change.Halfway(file, string(l.Write.Before), value)
}

// State is a journal as a whole.
type State struct {
	// Version is the format of the file.
	Version int
	// Txns are in the order they began.
	Txns []*Txn
	// Unknown counts records of a later version, Damaged lines whose checksum does not fit or that begin a transaction
	// anew under the id of an earlier one.
	Unknown, Damaged int
	// TornBytes is the length of the incomplete tail.
	TornBytes int64

	byID map[string]*Txn
	last map[Setting]*Last
	byN  map[int64]*Last
	next int64
	// good is where the torn tail begins.
	good int64
	// unterminated: the last line is damaged and has no newline.
	unterminated bool
	damagedBytes int64
	damage       []damageLine
	raw          [][]byte
	// always are lines that compaction keeps: the header, and what a later version wrote.
	always []int
}

func newState() *State {
	return &State{byID: map[string]*Txn{}, last: map[Setting]*Last{}, byN: map[int64]*Last{}, next: 1}
}

// Txn finds a transaction.
func (s *State) Txn(id string) (*Txn, bool) {
	t, ok := s.byID[id]
	return t, ok
}

// Open are the transactions that are not closed, oldest first.
func (s *State) Open() []*Txn {
	var open []*Txn
	for _, t := range s.Txns {
		if t.Phase != Closed {
			open = append(open, t)
		}
	}
	return open
}

// Last is the last write to a setting.
func (s *State) Last(k Setting) (Last, bool) {
	l, ok := s.last[k]
	if !ok {
		return Last{}, false
	}
	return *l, true
}

// CutOff is the last write of all, if it was begun and nothing is known of its end; false: there is none.
func (s *State) CutOff() (Write, bool) {
	l := s.byN[s.next-1]
	if l == nil || l.Done != nil {
		return Write{}, false
	}
	return l.Write, true
}

// Held is one transaction's hold on a setting.
type Held struct {
	Txn  *Txn
	Hold Hold
}

// Holders are the open transactions that hold a setting, oldest first; released ones are left out. original and base
// are what the setting was before the first of the open ones, the released among them. ok is false if no open
// transaction ever held it.
func (s *State) Holders(k Setting) (held []Held, original, base string, ok bool) {
	for _, t := range s.Open() {
		for _, h := range t.Holds {
			if h.Setting != k || t.lost[k] {
				continue
			}
			if !ok {
				original, base, ok = string(h.Original), h.Base, true
			}
			if t.Phase != Releasing {
				held = append(held, Held{t, h})
			}
		}
	}
	return held, original, base, ok
}

// Owners are all open transactions that hold a setting, the released ones among them, oldest first.
func (s *State) Owners(k Setting) []Held {
	var list []Held
	for _, t := range s.Open() {
		for _, h := range t.Holds {
			if h.Setting == k && !t.lost[k] {
				list = append(list, Held{t, h})
			}
		}
	}
	return list
}

// Orphans are the last writes to settings that no open transaction holds, by transactions that did not begin: in a
// journal that was damaged, their beginning may be what was lost. In order of their numbers.
func (s *State) Orphans() []Last {
	held := map[Setting]bool{}
	for _, t := range s.Open() {
		for _, h := range t.Holds {
			held[h.Setting] = true
		}
	}
	var lasts []Last
	for k, l := range s.last {
		if s.byID[l.Write.Txn] == nil && !held[k] {
			lasts = append(lasts, *l)
		}
	}
	slices.SortFunc(lasts, func(a, b Last) int { return cmp.Compare(a.Write.N, b.Write.N) })
	return lasts
}

// fold adds one record. lineNo is where it stands in raw, so that compaction can keep it to the letter.
func (s *State) fold(r Record, lineNo int) {
	switch {
	case r.Header != nil:
		s.Version = r.Header.Version
		s.always = append(s.always, lineNo)
	case r.Begin != nil:
		s.foldBegin(*r.Begin, lineNo)
	case r.Write != nil:
		s.foldWrite(*r.Write, lineNo)
	case r.Done != nil:
		s.foldDone(*r.Done, lineNo)
	case r.Commit != nil:
		s.foldCommit(*r.Commit, lineNo)
	case r.Release != nil:
		for _, id := range r.Release.Txns {
			if t := s.mark(id, lineNo); t != nil && t.Phase != Closed {
				t.Phase, t.Released = Releasing, r.Release
			}
		}
	case r.Close != nil:
		if t := s.mark(r.Close.Txn, lineNo); t != nil {
			t.Phase, t.Closed = Closed, r.Close
		}
	case r.Outcome != nil:
		if t := s.byID[r.Outcome.Txn]; t != nil {
			t.Outcome, t.outcomeLine = r.Outcome, lineNo
		}
	case r.Damage != nil:
		s.foldDamage(*r.Damage, lineNo)
	case r.Kept != nil:
		s.foldKept(*r.Kept, lineNo)
	default:
		s.Unknown++
		s.always = append(s.always, lineNo)
	}
}

// repeats tells whether a record begins a transaction under an id that has begun. What follows it under that id cannot
// be told from what belongs to the first.
func (s *State) repeats(r Record) bool {
	return r.Begin != nil && s.byID[r.Begin.Txn] != nil
}

func (s *State) foldBegin(b Begin, lineNo int) {
	t := &Txn{Begin: b, Phase: Applying, lost: map[Setting]bool{}, lines: []int{lineNo}}
	for _, h := range b.Holds {
		s.forgetEarlier(h)
		if !h.Rebase {
			continue
		}
		t.took = append(t.took, h.Setting)
		for _, earlier := range s.Open() {
			earlier.lost[h.Setting] = true
		}
	}
	s.Txns = append(s.Txns, t)
	s.byID[b.Txn] = t
}

// forgetEarlier drops the last write to a setting that is held anew: what was found there is not of that write, so that a
// value like it that comes later is not ours either. A write whose transaction's beginning is lost stays: nothing else
// tells of it.
func (s *State) forgetEarlier(h Hold) {
	l := s.last[h.Setting]
	if l == nil {
		return
	}
	if _, _, _, held := s.Holders(h.Setting); !h.Rebase && (held || s.byID[l.Write.Txn] == nil) {
		return
	}
	delete(s.byN, l.Write.N)
	delete(s.last, h.Setting)
}

func (s *State) foldCommit(c Commit, lineNo int) {
	for _, id := range append([]string{c.Txn}, c.Also...) {
		if t := s.mark(id, lineNo); t != nil && t.Phase == Applying {
			t.Phase = InForce
			if t.Trial != nil {
				t.Phase = OnTrial
			}
		}
	}
	for _, id := range c.Replaced {
		if t := s.mark(id, lineNo); t != nil && t.Phase != Closed {
			t.Phase, t.Closed = Closed, &Close{Txn: id, Reason: "replaced by " + c.Txn, Time: c.Time}
		}
	}
}

func (s *State) mark(id string, lineNo int) *Txn {
	t := s.byID[id]
	if t != nil {
		t.lines = append(t.lines, lineNo)
	}
	return t
}

func (s *State) foldWrite(w Write, lineNo int) {
	if before := s.last[w.Setting]; before != nil {
		delete(s.byN, before.Write.N)
	}
	l := &Last{Write: w, lines: []int{lineNo}}
	s.last[w.Setting], s.byN[w.N] = l, l
	s.next = max(s.next, w.N+1)
}

func (s *State) foldDone(d Done, lineNo int) {
	l := s.byN[d.N]
	if l == nil {
		return
	}
	l.Done = &d
	l.lines = append(l.lines, lineNo)
	if l.Write.Kind == change.KindCgroup && d.ID != 0 {
		s.setCgroupID(l.Write, d.ID)
	}
}

// setCgroupID gives the settings of a cgroup that a transaction created, which could not name it before, its id.
func (s *State) setCgroupID(w Write, id uint64) {
	t := s.byID[w.Txn]
	if t == nil {
		return
	}
	for i, h := range t.Holds {
		if h.ID == 0 && h.Controller == w.Controller && h.Path == w.Path &&
			h.Kind != change.KindCgroup {
			t.Holds[i].ID = id
		}
	}
}

// String is a line for people and tests.
func (s *State) String() string {
	return fmt.Sprintf("journal version %d: %d transactions, %d open", s.Version, len(s.Txns), len(s.Open()))
}
