package apply

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// maxOrphans bounds what is reported of transactions whose beginning was lost.
const maxOrphans = 100

// Why a setting was left in a journal that was damaged.
const (
	whyNotSure = "the journal was damaged and does not say whether this was changed; check it"
	whyOrphan  = "the journal was damaged where this change began; before our last write it was %q; check it"
)

// Damaged says that lines of the journal were damaged: what they told is lost, and so may be a setting that was to be
// put back. Restore returns it once, beside the Result of what could be done; when the damage could not be kept aside,
// each time.
type Damaged struct {
	File  string
	Lines int
	// Kept are the journals as they were found; empty if they could not be kept, for the reason NotKept.
	Kept    []string
	NotKept error
}

// Error names the way out.
func (e *Damaged) Error() string {
	where, then := "kept as found in "+strings.Join(e.Kept, ", "), "check the file and the settings, then remove the file"
	switch {
	case e.NotKept != nil:
		where, then = e.NotKept.Error(), "check the file and the settings"
	case len(e.Kept) == 0: // of a dry run
		where, then = "still in it; the next command that writes keeps them aside", "check the file and the settings"
	}
	return fmt.Sprintf("journal %s: %d damaged lines (%s): a setting that they describe may not be restored; %s",
		e.File, e.Lines, where, then)
}

func (e *Damaged) Unwrap() error { return e.NotKept }

// damagedOf is what a journal tells of damage that no restore has reported yet; nil is none.
func damagedOf(stateDir string, s *journal.State) *Damaged {
	d := &Damaged{File: journal.File(stateDir), Lines: s.Damaged}
	for _, found := range s.Damage() {
		if !found.Reported {
			d.Lines += found.Lines
			d.Kept = append(d.Kept, filepath.Join(stateDir, filepath.Base(found.Kept)))
		}
	}
	if d.Lines == 0 {
		return nil
	}
	return d
}

// warnDamaged puts damage that was not reported yet among the warnings.
func (r *run) warnDamaged() *Damaged {
	d := damagedOf(r.StateDir, r.j.State())
	if d != nil {
		d.NotKept = r.j.NotKept()
		r.warn("%v", d)
	}
	return d
}

// skipDamaged reports damage, and what of the lost changes can still be told, as left alone.
func (r *run) skipDamaged(ctx context.Context, d *Damaged) {
	r.skip(d.File, "", d.Error())
	n := 0
	for _, last := range r.j.State().Orphans() {
		w := last.Write
		if r.otherBoot(w.Setting) || !r.kind(w.Kind).traits().valued {
			continue
		}
		current, err := r.read(ctx, w.Key())
		if err != nil || !last.Ours(w.File, current) || change.Same(w.File, current, string(w.Before)) {
			continue
		}
		if n++; n > maxOrphans {
			return
		}
		r.skip(string(w.Path), w.File, fmt.Sprintf(whyOrphan, w.Before))
	}
}

// markDamageReported notes in the journal that its damage was reported as a failure.
func (r *run) markDamageReported() {
	for _, d := range r.j.State().Damage() {
		if d.Reported {
			continue
		}
		d.Reported = true
		if err := r.j.Append(true, journal.Record{Damage: &d}); err != nil {
			r.log().Debug("damage will be reported again", "error", err)
			return
		}
	}
}

// damaged tells whether lines of this journal were lost.
func (r *run) damaged() bool {
	s := r.j.State()
	return s.Damaged > 0 || len(s.Damage()) > 0
}

// isFoldOfHolders reports whether a value is the one that the open transactions, or those outside the rollback, make of the
// original: in a damaged journal, where the entry of the last write may be lost, such a value is ours.
func (r *run) isFoldOfHolders(s journal.Setting, current, original, base string, held []journal.Held) bool {
	for _, by := range [][]journal.Held{r.j.State().Owners(s), held} {
		if value, err := change.Fold(s.File, original, base, folds(by)); err == nil && change.Same(s.File, value, current) {
			return true
		}
	}
	return false
}

// Health is the state of the journal.
type Health struct {
	File string `json:"file"`
	// Damaged counts damaged lines that the next writer will keep aside, Unreported those that no restore has reported
	// yet, the former among them.
	Damaged    int `json:"damaged_lines"`
	Unreported int `json:"unreported_lines"`
	// Kept are the journals kept as they were found, for people to look at and remove.
	Kept []string `json:"kept"`
}

// ReadHealth looks at the journal, without a lock, and changes nothing.
func ReadHealth(env Env) (Health, error) {
	h := Health{File: journal.File(env.StateDir), Kept: []string{}}
	s, err := journal.Load(env.StateDir)
	if err != nil {
		return h, err
	}
	h.Damaged = s.Damaged
	if d := damagedOf(env.StateDir, s); d != nil {
		h.Unreported = d.Lines
	}
	kept, err := journal.KeptFiles(env.StateDir)
	h.Kept = append(h.Kept, kept...)
	return h, err
}
