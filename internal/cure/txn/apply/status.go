package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/txn/change"
	"github.com/unthrottle/unthrottle/internal/cure/txn/journal"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// InForce is one transaction that has not been taken back.
type InForce struct {
	ID         string            `json:"id"`
	Target     string            `json:"target"`
	Name       string            `json:"name,omitempty"`
	Remedy     string            `json:"remedy"`
	Since      time.Time         `json:"since"`
	By         string            `json:"by"`
	Verdict    string            `json:"verdict"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Expected   *Expected         `json:"expected,omitempty"`
	Outcome    *Outcome          `json:"outcome,omitempty"`
	// Changes are what it holds: From is the original value, To what Op works with.
	Changes []change.Change `json:"-"`
}

// MarshalJSON escapes names that are not UTF-8.
func (f InForce) MarshalJSON() ([]byte, error) {
	type plain InForce
	f.Target = text.EscapePath(f.Target)
	return json.Marshal(plain(f))
}

// Past is a transaction that has ended.
type Past struct {
	InForce
	Until   time.Time `json:"until"`
	Reason  string    `json:"reason"`
	Skipped []Skip    `json:"skipped,omitempty"`
}

// MarshalJSON keeps the fields of both: InForce has a MarshalJSON of its own that would hide the rest.
func (p Past) MarshalJSON() ([]byte, error) {
	type inForce InForce
	p.Target = text.EscapePath(p.Target)
	return json.Marshal(struct {
		inForce
		Until   time.Time `json:"until"`
		Reason  string    `json:"reason"`
		Skipped []Skip    `json:"skipped,omitempty"`
	}{inForce(p.InForce), p.Until, p.Reason, p.Skipped})
}

// Status lists what is in force, oldest first. It takes no lock; what a writer is busy with shows as "interrupted" or
// "restore unfinished".
func Status(env Env) ([]InForce, error) {
	s, err := journal.Load(env.StateDir)
	if err != nil {
		return nil, err
	}
	all := []InForce{}
	for _, t := range s.Open() {
		all = append(all, inForce(t))
	}
	return all, nil
}

// History lists what has ended, newest first, at most limit (0: all that is kept).
func History(env Env, limit int) ([]Past, error) {
	s, err := journal.Load(env.StateDir)
	if err != nil {
		return nil, err
	}
	all := []Past{}
	for i := len(s.Txns) - 1; i >= 0 && (limit <= 0 || len(all) < limit); i-- {
		t := s.Txns[i]
		if t.Phase != journal.Closed {
			continue
		}
		p := Past{InForce: inForce(t), Until: t.Closed.Time, Reason: t.Closed.Reason}
		for _, skip := range t.Closed.Skipped {
			p.Skipped = append(p.Skipped, Skip{Path: string(skip.Path), File: skip.File, Why: skip.Why})
		}
		all = append(all, p)
	}
	return all, nil
}

func inForce(t *journal.Txn) InForce {
	f := InForce{ID: t.Begin.Txn, Target: string(t.Target), Name: t.Name, Remedy: t.Remedy, Since: t.Time, By: t.By,
		Verdict: VerdictUnverified, Parameters: t.Parameters}
	var e Expected
	if len(t.Expected) > 0 && json.Unmarshal(t.Expected, &e) == nil {
		f.Expected = &e
	}
	var o Outcome
	if t.Outcome != nil && json.Unmarshal(t.Outcome.Outcome, &o) == nil {
		f.Outcome = &o
		f.Verdict = o.Verdict
	}
	switch t.Phase {
	case journal.Applying:
		f.Verdict = verdictInterrupted
	case journal.Releasing:
		f.Verdict = verdictReleasing
	}
	for _, h := range t.Holds {
		f.Changes = append(f.Changes, change.Change{Kind: h.Kind, Op: h.Op, Controller: h.Controller, Path: string(h.Path),
			File: h.File, Unit: string(h.Unit), From: string(h.Original), To: string(h.To),
			MembersController: h.MembersController, MembersPath: string(h.MembersPath), Why: h.Why})
	}
	return f
}

// Record stores what came of a transaction, beside what was expected. It may be called again; the last one counts.
func Record(env Env, id string, o Outcome) error {
	j, err := env.open(context.Background())
	if err != nil {
		return err
	}
	defer j.Close()
	if _, ok := j.State().Txn(id); !ok {
		return fmt.Errorf("no transaction %q in %s", id, journal.File(env.StateDir))
	}
	if o.At.IsZero() {
		o.At = env.now()
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := j.Append(true, journal.Record{Outcome: &journal.Outcome{Txn: id, Time: env.now(), Outcome: text}}); err != nil {
		return err
	}
	if err := j.Compact(); err != nil {
		env.log().Debug("the journal could not be shortened", "error", err)
	}
	return nil
}

// DriftItem is a setting whose value is no longer the one we left.
type DriftItem struct {
	ID      string `json:"id"`
	Target  string `json:"target"`
	Path    string `json:"path"`
	File    string `json:"file"`
	Want    string `json:"want"`
	Current string `json:"current"`
	// Gone: the cgroup does not exist any more, or is another one under the same path.
	Gone bool `json:"gone,omitempty"`
}

// Drift compares what is in force with what is there. It takes no lock and changes nothing.
func Drift(env Env) ([]DriftItem, error) {
	s, err := journal.Load(env.StateDir)
	if err != nil {
		return nil, err
	}
	w := world{env}
	all := []DriftItem{}
	for _, t := range s.Open() {
		if t.Phase != journal.InForce {
			continue
		}
		for _, h := range t.Holds {
			last, wrote := s.Last(h.Setting)
			if !wrote || !h.Kind.Known() || h.Kind == change.KindTask || h.Boot != env.BootID {
				continue
			}
			k := h.Key()
			item := DriftItem{ID: t.Begin.Txn, Target: string(t.Target), Path: k.Path, File: k.File,
				Want: string(last.Write.Want)}
			id, err := w.id(k)
			if err == nil && id == h.ID {
				item.Current, err = w.read(context.Background(), k)
				if err == nil && last.Ours(k.File, item.Current) {
					continue
				}
			}
			if err != nil && !errors.Is(err, cgroup.ErrNoCgroup) || (h.Kind == change.KindIRQ || h.Kind == change.KindSched) && id != h.ID {
				// Not known; or an interrupt or a thread that ended, which needs no care.
				continue
			}
			item.Gone = err != nil || id != h.ID
			all = append(all, item)
		}
	}
	return all, nil
}

// Stamp changes whenever the journal does: who looks often can spare itself reading it again. It is cheap; "" is no
// journal.
func Stamp(env Env) (string, error) {
	info, err := os.Stat(journal.File(env.StateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("journal: %w", err)
	}
	return fmt.Sprintf("%d-%d", info.Size(), info.ModTime().UnixNano()), nil
}
