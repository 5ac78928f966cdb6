package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/switchback"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// spreadDir is the folder of trials that are spread over hours, in that of the journal: a file each.
const spreadDir = "switchbacks"

const (
	// mostSpread is how many containers of a node have one at a time; of others the turn comes when one ends.
	mostSpread = 8
	// trialRetry is how soon a container asks again for a trial that had no room.
	trialRetry = time.Minute
	// wrongly is the probability of keeping a remedy that changes nothing.
	wrongly = 0.05
	// spreadVersion is that of the files. A file of another one is ended, not read.
	spreadVersion = 2
	// spreadLook is how long a container is looked at before its trial, and after a restart, with what that costs.
	spreadLook = 2 * time.Minute
	// mostSpreadFile bounds a file, in bytes, and mostSpreadFiles how many are read.
	mostSpreadFile, mostSpreadFiles = 4 << 20, 1024
)

// spreading is a trial of one container that is spread over hours. What is exported survives the agent.
type spreading struct {
	Version int    `json:"version"`
	Cgroup  string `json:"cgroup"`
	ID      uint64 `json:"cgroup_id"`
	Name    string `json:"container"`
	// Names are those of the variants beside leaving it.
	Names []string         `json:"variants"`
	State switchback.State `json:"state"`
	// Next is when the next block is due.
	Next time.Time `json:"next"`
	// Gap is the time from the begin of one block to that of the next.
	Gap time.Duration `json:"gap_ns"`
	// UsedCPUs is what the container used when it began; 0: not measured. LimitCPUs was its limit.
	UsedCPUs  float64 `json:"used_cpus"`
	LimitCPUs float64 `json:"limit_cpus"`
	// Measure is what blocks are compared by.
	Measure fix.Measure `json:"measure"`
	// AA: it is an A/A test. Each block leaves the container as it is, and nothing is kept.
	AA bool `json:"aa,omitempty"`
	// Keeping is the variant that is about to be kept; 0: none.
	Keeping int `json:"keeping"`
	// Kept is what became of a remedy that was kept, in Transaction; nil: remedies are tried still.
	Kept        *switchback.Kept `json:"kept"`
	Transaction string           `json:"transaction"`
	Remedy      string           `json:"remedy"` // of Transaction
	// Alone is what was taken back for a block and is to be in force again; nil: nothing.
	Alone *alone `json:"alone"`

	blocks *fix.Blocks // nil: the agent has not looked yet since it started
	at     []int       // of each of Names, which variant of blocks it is; 0: it cannot be tried by what the agent saw since it started
}

// trying tells whether remedies are tried still; nil: there is no trial.
func (s *spreading) trying() bool { return s != nil && s.Kept == nil }

// trials counts those in which remedies are tried still, and those that kept one.
func trials(all map[string]*spreading) (trying, kept int) {
	for _, s := range all {
		if s.trying() {
			trying++
		} else {
			kept++
		}
	}
	return trying, kept
}

// file is where it is kept.
func (s *spreading) file(stateDir string) string {
	sum := sha256.Sum256([]byte(s.Cgroup))
	return filepath.Join(stateDir, spreadDir, hex.EncodeToString(sum[:8])+".json")
}

// write keeps it, whole or not at all.
func (s *spreading) write(stateDir string) error {
	out, err := json.Marshal(s.renamed(text.EscapePath))
	if err != nil {
		return err
	}
	name := s.file(stateDir)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(name, append(out, '\n'), 0o600)
}

// renamed is it with strangers' names written otherwise: in files they are escaped as in the journal, because JSON cannot carry what is not
// UTF-8.
func (s *spreading) renamed(to func(string) string) *spreading {
	as := *s
	as.Cgroup = to(s.Cgroup)
	if s.Alone != nil {
		out := *s.Alone
		out.Purpose.Target.Path = to(out.Purpose.Target.Path)
		out.Changes = slices.Clone(out.Changes)
		for i := range out.Changes {
			c := &out.Changes[i]
			c.Path, c.MembersPath, c.Unit = to(c.Path), to(c.MembersPath), to(c.Unit)
			c.From, c.To = to(c.From), to(c.To)
		}
		as.Alone = &out
	}
	return &as
}

// readSpread reads the trials of a state directory, and says by the name of each file that cannot be read why.
func readSpread(stateDir string) (all []*spreading, unread map[string]error, err error) {
	unread = map[string]error{}
	entries, err := os.ReadDir(filepath.Join(stateDir, spreadDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unread, nil
	}
	for _, e := range entries {
		name := filepath.Join(stateDir, spreadDir, e.Name())
		if strings.HasPrefix(e.Name(), ".") { // of a write that was cut off
			continue
		}
		if s, err := readOneSpread(name); err != nil {
			unread[name] = err
		} else if all = append(all, s); len(all) == mostSpreadFiles {
			break
		}
	}
	return all, unread, err
}

func readOneSpread(name string) (*spreading, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > mostSpreadFile {
		return nil, fmt.Errorf("%d bytes are more than any trial has", info.Size())
	}
	in, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := &spreading{}
	if err := json.Unmarshal(in, s); err != nil {
		return nil, err
	}
	s = s.renamed(text.UnescapePath)
	switch err := s.State.Plan.Check(); {
	case s.Version != spreadVersion:
		return nil, fmt.Errorf("version %d: this agent writes %d", s.Version, spreadVersion)
	case err != nil:
		return nil, err
	case s.State.Plan.Variants != len(s.Names) || len(s.State.Out) != len(s.Names)+1 || s.Gap <= 0 || s.Keeping < 0 ||
		s.Keeping > len(s.Names):
		return nil, errors.New("its parts do not fit each other")
	case s.Alone != nil && s.Kept == nil:
		return nil, errors.New("a block without a remedy, and none was kept")
	case slices.ContainsFunc(s.State.Blocks, func(b switchback.Block) bool {
		return b.Variant < 0 || b.Variant > len(s.Names) || b.Round < 0
	}):
		return nil, errors.New("a block of no variant")
	}
	return s, nil
}

// rememberSpread reads what agents before this one left. Files that cannot be read are removed: what they tried was undone when their agent
// ended, and their trial begins anew.
func (a *agent) rememberSpread() {
	all, unread, err := readSpread(a.Env.StateDir)
	if err != nil {
		a.Log.Warn("trials that an agent before this one spread over hours begin anew", "why", err)
	}
	for name, err := range unread {
		a.Log.Warn("a trial that an agent before this one spread over hours begins anew", "file", text.Shown(name),
			"why", errors.Join(err, os.Remove(name)))
	}
	cut, _ := filepath.Glob(filepath.Join(a.Env.StateDir, spreadDir, ".*")) // of writes that were cut off
	for _, name := range cut {
		_ = os.Remove(name)
	}
	now := time.Now()
	for _, s := range all {
		if most := now.Add(s.Gap); s.Next.After(most) { // the clock was set back
			s.Next = most
		}
		if s.Alone != nil {
			s.Next = time.Time{} // at once
		}
		if a.chooser.spread[s.Cgroup] = s; s.trying() {
			a.Log.Info("a trial that is spread over hours goes on", "container", text.Sanitize(s.Name, 128), "blocks", len(s.State.Blocks))
		}
	}
}

// errTrialsFull: as many containers of the node have a trial as may. The turn of another one comes when one ends.
var errTrialsFull = fmt.Errorf("%d containers of this node have a trial already", mostSpread)

// fits is how many remedies, the promising ones first, have so many turns of a length within most that one can win; at least one.
func fits(most, turn time.Duration) int {
	rounds := switchback.LeastPairs * max(turn, time.Second)
	return min(max(1, int(most/rounds)-1), switchback.MostVariants)
}

// beginSpread looks at a container, and begins a trial that is spread over hours. What it tries first comes with a later round.
func (a *agent) beginSpread(ctx context.Context, f finding, env fix.Env, o fix.Options) error {
	path := f.observation.Container.Group.Path
	blocks, err := fix.Spread(ctx, env, o, nil)
	if err != nil {
		return err
	}
	now := time.Now()
	limit, _, _ := cgroup.Effective(f.observation.Levels)
	names := blocks.Names()
	if n := fits(f.rule.Trial.Most, blocks.Lasts()); n < len(names) {
		a.Log.Info(text.Either(n < switchback.MostVariants, "its trial has room for fewer remedies: give a longer most",
			"a trial has no more remedies"), "container", text.Sanitize(f.observation.Container.Name, 128), "most",
			f.rule.Trial.Most.String(), "left_out", strings.Join(names[n:], "; "))
		names = names[:n]
	}
	lasts := max(blocks.Lasts(), switchback.LeastBlock)
	most := max(f.rule.Trial.Most, 2*time.Duration(1+len(names))*lasts)
	state, err := switchback.Begin(switchback.Plan{Variants: len(names), Block: lasts, Most: most, Wrong: wrongly,
		Seed: uint64(now.UnixNano())}, now)
	if err != nil {
		return err
	}
	s := &spreading{Version: spreadVersion, Cgroup: path, ID: f.observation.CgroupID, Name: f.observation.Container.Name, Names: names,
		State: state, Next: now, Gap: max(lasts, gapOf(f.rule.Trial.Over, most, blocks.Lasts())), UsedCPUs: blocks.Used(), LimitCPUs: limit,
		Measure: blocks.Measure(), AA: f.rule.Trial.AA, blocks: blocks}
	s.fit()
	if err := s.write(a.Env.StateDir); err != nil {
		return fmt.Errorf("the state of its trial: %w", err)
	}
	a.chooser.spread[path] = s
	a.Log.Info("trying remedies in turns that are spread", "container", text.Sanitize(s.Name, 128), "variants", strings.Join(names, "; "),
		"block_seconds", thousandths(lasts.Seconds()), "gap_seconds", thousandths(s.Gap.Seconds()), "over", f.rule.Trial.Over.String(),
		"aa", s.AA)
	return nil
}

// gapOf is the time from the begin of one block to that of the next, so that blocks that last so long, and most of that in all, are spread
// over a time.
func gapOf(over, most, lasts time.Duration) time.Duration {
	return time.Duration(float64(over) * lasts.Seconds() / most.Seconds())
}

// fit finds each variant among the candidates of blocks, which may be others after a restart.
func (s *spreading) fit() {
	have := s.blocks.Names()
	s.at = make([]int, len(s.Names)+1)
	for i, name := range s.Names {
		s.at[i+1] = slices.Index(have, name) + 1
	}
}

// spreadOn runs the block that is due, of one container a round.
func (a *agent) spreadOn(ctx context.Context, round []observe.Observation, held []txn.InForce, now time.Time) {
	due := a.dueSpread(round, held, now)
	defer func() { a.spreadFigures.take(a.chooser.spread) }()
	if due == nil {
		return
	}
	s := due.s
	if s.Kept != nil {
		a.holdback(ctx, s, due.f, held)
		return
	}
	what := "a turn of a trial of " + boundedPath(s.Cgroup)
	var err error
	longest := 3*s.State.Plan.Block + spreadLook
	a.meanwhile(ctx, what, longest, func() { err = a.block(ctx, s, due.f, held) })
	log := a.Log.With("container", text.Sanitize(s.Name, 128), "cgroup", boundedPath(s.Cgroup))
	switch {
	case err == nil:
	case ctx.Err() != nil: // the agent ends: the next one goes on
	case apply.Passing(err):
		log.Debug("a block waits", "why", err)
		s.Next = time.Now().Add(staleRetry)
	default:
		log.Warn("its trial is ended", "why", err)
		a.endSpread(s, spreadEnded)
		a.chooser.hadTrial(s.Cgroup, hadTrial{time.Now(), s.UsedCPUs})
	}
}

// due is a trial whose block may run now, and its container.
type due struct {
	s *spreading
	f finding
}

// dueSpread is the one that waits longest, of those that may go on. Trials of containers that are gone, are others now, or whose
// rule asks for no trial any more are ended.
func (a *agent) dueSpread(round []observe.Observation, held []txn.InForce, now time.Time) *due {
	inForce := byTarget(held)
	seen := map[string]*observe.Observation{}
	for i := range round {
		seen[round[i].Container.Group.Path] = &round[i]
	}
	var first *due
	for path, s := range a.chooser.spread {
		o, rule := seen[path], a.chooser.known(path)
		why := ""
		switch {
		case o == nil && len(round) > 0:
			why = "it is gone"
		case o == nil:
			continue
		case o.CgroupID != s.ID:
			why = "its container started anew"
		case rule == nil || rule.Trial.Over == 0 || rule.Observes(now):
			why = "its rule asks for none any more"
		case s.trying() && rule.Trial.AA != s.AA:
			why = "its rule asks for another kind of trial"
		case s.otherLimit(o, inForce[path]):
			why = "its limit is another one now"
		}
		if why != "" {
			a.Log.Info("a trial that is spread over hours is ended", "container", text.Sanitize(s.Name, 128), "why", why)
			a.endSpread(s, spreadEnded)
			continue
		}
		h := inForce[path]
		if s.Keeping > 0 && s.Kept == nil {
			a.kept(s, h)
		}
		if s.Kept != nil && s.Alone == nil && h != nil && h.ID != s.Transaction && h.By == a.Env.By && h.Remedy == s.Remedy {
			s.Transaction = h.ID // the agent itself brought it up to date
			a.keepSpread(s)
		}
		if s.Kept != nil && s.Alone == nil && (h == nil || h.ID != s.Transaction) {
			a.Log.Info("what a trial kept is compared no more: it was taken back, or something else is in its place", "container",
				text.Sanitize(s.Name, 128), "transaction", s.Transaction)
			a.endSpread(s, spreadEnded)
			continue
		}
		if s.Kept == nil && h != nil || slices.ContainsFunc(held, func(f txn.InForce) bool { return f.Trial != nil }) {
			continue // another trial, or a remedy of somebody else
		}
		if s.Next.After(now) || s.Alone == nil && !rule.Trial.Quiet.Until(now, s.State.Plan.Block).IsZero() {
			continue
		}
		if len(o.LimitChanges) > 0 {
			continue // a resize: the next round tells
		}
		if first == nil || s.Next.Before(first.s.Next) {
			first = &due{s, finding{observation: *o, rule: rule}}
		}
	}
	return first
}

// block runs one block, and decides.
func (a *agent) block(ctx context.Context, s *spreading, f finding, held []txn.InForce) error {
	if s.blocks == nil {
		env, o, err := a.fixOf(f, held)
		if err != nil {
			return err
		}
		blocks, err := fix.Spread(ctx, env, o, &s.Measure)
		if err != nil && !fix.MayTellLater(err) {
			return err
		}
		if s.blocks = blocks; err == nil {
			s.fit()
		}
		if err != nil || !s.canTry() { // a calm hour: a later one tells more
			a.waits(s, err)
			return nil
		}
	}
	now := time.Now()
	s.Next = now.Add(s.Gap)
	index, v := s.State.Next()
	log := a.Log.With("container", text.Sanitize(s.Name, 128), "variant", s.name(v))
	if v > 0 && s.at[v] == 0 { // the round goes on without it
		log.Debug("cannot be tried by what was seen since the agent started")
		s.State, s.Next = s.State.Add(switchback.Block{Round: index, Variant: v, Began: now}, 0), now
		a.keepSpread(s)
		return nil
	}
	shown, took, err := s.blocks.Block(ctx, s.inForce(v))
	if err != nil {
		return err
	}
	b := switchback.Block{Round: index, Variant: v, Began: now, LogTail: shown.LogTail, Requests: shown.Requests, Slow: shown.Slow}
	s.State = s.State.Add(b, took)
	if shown.Refused == "" {
		a.spreadFigures.block(s.inForce(v))
	}
	if why := shown.Refused; why != "" && v > 0 {
		s.State.Out[v] = why
	} else if shown.Ended != "" && v > 0 {
		s.State.Out[v] = shown.Ended
	}
	if v > 0 && s.State.Out[v] != "" {
		log.Info("is not tried again", "why", text.Shown(s.State.Out[v]))
	}
	d := s.State.Decide()
	if d.Answer == switchback.Going {
		a.keepSpread(s)
		return nil
	}
	defer s.blocks.Forget(ctx)
	if d.Answer == switchback.Keep && s.at[d.Variant] == 0 && !s.AA {
		a.waits(s, nil)
		return nil
	}
	a.chooser.hadTrial(s.Cgroup, hadTrial{time.Now(), s.UsedCPUs})
	if s.AA {
		a.endAA(s, d)
		return nil
	}
	tried := s.State.Count(switchback.Remedied)
	log = a.Log.With("container", text.Sanitize(s.Name, 128), "blocks", len(s.State.Blocks), "slow_requests", tried.Slow,
		"requests", tried.Requests, "why", text.Shown(d.Why))
	if d.Answer != switchback.Keep {
		log.Info("a trial that was spread over hours kept nothing", "answer", string(d.Answer))
		a.spreadEnds.add(f.observation.Container, spreadNone, "nothing is in force: "+d.Why, now)
		a.endSpread(s, spreadNone)
		return nil
	}
	s.Keeping = d.Variant
	if err := s.write(a.Env.StateDir); err != nil { // before it is kept, so that the next agent knows it
		return err
	}
	result, err := s.blocks.Keep(ctx, s.at[d.Variant], d.Why)
	if err != nil {
		return err
	}
	log.Info("applied", "remedy", result.Remedy, "variant", s.name(d.Variant), "transaction", result.ID)
	a.spreadEnds.add(f.observation.Container, spreadKept, s.name(d.Variant)+" is in force: "+d.Why, now)
	a.nowKept(s, result.ID, result.Remedy)
	return nil
}

// inForce is which variant of the blocks is in force in a block of one of the trial.
func (s *spreading) inForce(v int) int {
	if s.AA {
		return 0
	}
	return s.at[v]
}

// endAA ends an A/A test, and tells which remedy would have been kept though it changed nothing.
func (a *agent) endAA(s *spreading, d switchback.Decision) {
	would, outcome := "nothing", spreadAANone
	if d.Answer == switchback.Keep {
		would, outcome = s.name(d.Variant), spreadAAKept
	}
	a.Log.Info("an A/A test ended", "container", text.Sanitize(s.Name, 128), "would_have_kept", would, "blocks", len(s.State.Blocks),
		"why", text.Shown(d.Why))
	a.endSpread(s, outcome)
}

// canTry tells whether any variant that is still in can be tried by what was seen since the agent started.
func (s *spreading) canTry() bool {
	return slices.ContainsFunc(s.State.In(), func(v int) bool { return v > 0 && s.at[v] > 0 })
}

// waits lets a trial look again when its next block is due. It counts as a block, so that a container that stays calm ends its trial.
func (a *agent) waits(s *spreading, why error) {
	if why == nil {
		why = errors.New("what was tried before is not among what can be tried")
	}
	a.Log.Debug("a trial waits: after a restart of the agent nothing can be tried now", "container", text.Sanitize(s.Name, 128), "why", why)
	s.blocks, s.Next = nil, time.Now().Add(s.Gap)
	s.State.Used += s.State.Plan.Block
	if s.State.Used >= s.State.Plan.Most {
		a.Log.Info("a trial that was spread over hours kept nothing: too little came since the agent started anew", "container",
			text.Sanitize(s.Name, 128), "why", why)
		a.chooser.hadTrial(s.Cgroup, hadTrial{time.Now(), s.UsedCPUs})
		a.endSpread(s, spreadNone)
		return
	}
	a.keepSpread(s)
}

// nowKept notes that a variant is kept, in a transaction.
func (a *agent) nowKept(s *spreading, transaction, remedy string) {
	s.Kept = &switchback.Kept{Plan: s.State.Plan, Promised: s.State.Gain(s.Keeping)}
	s.Transaction, s.Remedy, s.Keeping, s.State.Blocks, s.blocks = transaction, remedy, 0, nil, nil
	a.spreadFigures.ended(spreadKept)
	a.keepSpread(s)
}

// kept finds out what became of a variant that an agent before this one was about to keep. h is what is in force.
func (a *agent) kept(s *spreading, h *txn.InForce) {
	switch {
	case h == nil:
		s.Keeping = 0 // it was not: a later block decides again
	case h.By == a.Env.By && h.Trial == nil:
		a.nowKept(s, h.ID, h.Remedy)
	}
}

// otherLimit tells whether the container has another limit than that which remedies were tried under so far. What is in force may change
// it.
func (s *spreading) otherLimit(o *observe.Observation, inForce *txn.InForce) bool {
	now, _, _ := cgroup.Effective(o.Levels)
	return s.trying() && inForce == nil && len(o.LimitChanges) == 0 && now != s.LimitCPUs
}

// name is that of a variant.
func (s *spreading) name(v int) string {
	if v == 0 {
		return "left as it is"
	}
	return s.Names[v-1]
}

// endSpread forgets a trial, and its file. outcome is what came of it.
func (a *agent) endSpread(s *spreading, outcome string) {
	a.spreadFigures.ended(outcome)
	delete(a.chooser.spread, s.Cgroup)
	if err := os.Remove(s.file(a.Env.StateDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.Log.Error("the state of a trial that ended cannot be removed", "error", err)
	}
}
