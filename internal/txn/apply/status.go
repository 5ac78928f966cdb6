package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// Status lists what is in force, oldest first. It takes no lock; what a writer is busy with shows as "interrupted" or
// "restore unfinished".
func Status(env Env) ([]txn.InForce, error) {
	s, err := journal.Load(env.StateDir)
	if err != nil {
		return nil, err
	}
	transactions := []txn.InForce{}
	for _, t := range s.Open() {
		f := inForce(t)
		if f.Trial = env.trial(t); f.Trial != nil {
			f.Verdict = verdictOnTrial
		}
		if f.Trial.Lost() {
			f.Verdict = verdictLost
		}
		transactions = append(transactions, f)
	}
	return transactions, nil
}

// History lists what has ended, newest first, at most limit (0: all that is kept).
func History(env Env, limit int) ([]txn.Past, error) {
	s, err := journal.Load(env.StateDir)
	if err != nil {
		return nil, err
	}
	gone := []txn.Past{}
	for i := len(s.Txns) - 1; i >= 0 && (limit <= 0 || len(gone) < limit); i-- {
		t := s.Txns[i]
		if t.Phase != journal.Closed {
			continue
		}
		p := txn.Past{InForce: inForce(t), Until: t.Closed.Time, Reason: t.Closed.Reason}
		for _, skip := range t.Closed.Skipped {
			p.Skipped = append(p.Skipped, txn.Skip{Path: string(skip.Path), File: skip.File, Why: skip.Why})
		}
		gone = append(gone, p)
	}
	return gone, nil
}

func inForce(t *journal.Txn) txn.InForce {
	f := txn.InForce{ID: t.Begin.Txn, Target: string(t.Target), Name: t.Name, Remedy: t.Remedy, Since: t.Time, By: t.By,
		Verdict: verdictUnverified, Parameters: t.Parameters, Unfinished: !t.Held() && t.Phase != journal.Closed}
	var e txn.Expected
	if len(t.Expected) > 0 && json.Unmarshal(t.Expected, &e) == nil {
		f.Expected = &e
	}
	var o txn.Outcome
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
func Record(env Env, id string, o txn.Outcome) error {
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

// Drift compares what is in force with what is there. It takes no lock and changes nothing.
func Drift(env Env) ([]txn.DriftItem, error) {
	s, err := journal.Load(env.StateDir)
	if err != nil {
		return nil, err
	}
	w := world{env}
	unanswered := false // a question about a pod: the next ones would have to wait as long
	items := []txn.DriftItem{}
	for _, t := range s.Open() {
		if !t.Held() {
			continue
		}
		for _, h := range t.Holds {
			last, wrote := s.Last(h.Setting)
			if !wrote || !h.Kind.Known() || h.Kind == change.KindTask || h.Kind == change.KindPodCPU && unanswered {
				continue
			}
			k := h.Key()
			item := txn.DriftItem{ID: t.Begin.Txn, Target: string(t.Target), Path: k.Path, File: k.File,
				Want: string(last.Write.Want)}
			ended := w.otherBoot(h.Setting)
			id, err := w.id(k)
			unanswered = unanswered || errors.Is(err, context.DeadlineExceeded)
			if err == nil && id == h.ID && !ended {
				item.Current, err = w.read(context.Background(), k)
				if err == nil && last.Ours(k.File, item.Current) {
					continue
				}
			}
			if err != nil && !errors.Is(err, cgroup.ErrNoCgroup) || w.kind(h.Kind).traits().short && (id != h.ID || ended) {
				// Not known; or an interrupt or a thread that ended, which needs no care.
				continue
			}
			item.Gone = err != nil || id != h.ID || ended
			items = append(items, item)
		}
	}
	return items, nil
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
