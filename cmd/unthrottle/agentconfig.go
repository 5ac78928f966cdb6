package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/agent"
	"github.com/unthrottle/unthrottle/internal/cure/nri"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// agentFlags are the flags of the agent.
type agentFlags struct {
	write                    writeFlags
	config, cpu, memory, nri string
	// answers is a socket; "": none. answersUID may ask there beside root.
	answers    string
	answersUID int
	// pods is the file of the node's pods; "": none.
	pods string
	// node names this node in rows where the file does not; "": by the host's name.
	node string
	// watch: a changed file is read again.
	watch bool
}

// agentConfig is the file with the flags that go before it.
type agentConfig struct {
	// file is where the rules are from.
	file  string
	rules policy.Rules
	// untrusted says why commands in the file must not be run; "": they may.
	untrusted string
	write     writeFlags
	// nri says how to reach the runtime; nil: not at all.
	nri *nri.Options
	// answers is the socket for what is seen, pods the file of the node's pods; "": none.
	answers, pods string
	answersUID    int
	// listeners stay open over a reload.
	listeners *agent.Listeners
	// reloaded: another configuration was in use before.
	reloaded bool
}

// read reads the file, until ctx ends.
func (f agentFlags) read(ctx context.Context, cmd *cobra.Command) (agentConfig, error) {
	c := agentConfig{write: f.write, file: f.config, answers: f.answers, answersUID: f.answersUID, pods: f.pods}
	if f.answersUID < 0 || f.answersUID > 0 && f.answers == "" {
		return c, errors.New("--answers-uid: give the number of a user, together with --answers")
	}
	var err error
	if c.rules, c.untrusted, err = policy.ReadRules(ctx, f.config); err != nil {
		return c, err
	}
	if c.rules.Export.Node == "" {
		c.rules.Export.Node = f.node
	}
	if f.cpu != "" {
		if err := c.rules.Own.SetCPU(f.cpu); err != nil {
			return c, fmt.Errorf("--budget-cpu %w", err)
		}
	}
	if f.memory != "" {
		if err := c.rules.Own.SetMemory(f.memory); err != nil {
			return c, fmt.Errorf("--budget-memory %w", err)
		}
	}
	if c.nri, err = nriOptions(f.nri); err != nil {
		return c, err
	}
	return c, c.write.fromRules(cmd, c.rules)
}

// Words of --nri beside a socket's path.
const (
	nriAuto = "auto"
	nriOff  = "off"
)

// nriOptions reads --nri.
func nriOptions(flag string) (*nri.Options, error) {
	switch {
	case flag == nriOff:
		return nil, nil
	case flag == nriAuto:
		return &nri.Options{Socket: nri.DefaultSocket, Optional: true}, nil
	case filepath.IsAbs(flag):
		return &nri.Options{Socket: flag}, nil
	}
	return nil, fmt.Errorf("--nri %.200q is neither the absolute path of a socket nor auto nor off", flag)
}

// check says what is wrong with a configuration, which read returned with err, and what it amounts to if nothing is.
func (f agentFlags) check(out io.Writer, c agentConfig, err error) error {
	if several := policy.Mistakes(nil); errors.As(err, &several) {
		return fmt.Errorf("%s has %s, and nothing was started:\n%w", f.config, text.Count(len(several), "mistake"), several)
	}
	if err != nil {
		return err
	}
	found, err := c.problems()
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%s has %s, and nothing was started:\n%s", f.config, text.Count(len(found), "mistake"), strings.Join(found, "\n"))
	}
	r := c.rules
	fmt.Fprintf(out, "%s is fine: mode %s, %s, metrics on %s\n", f.config, r.Mode, text.Count(len(r.Rules), "rule"), r.Listen)
	for _, rule := range r.Rules {
		if r.Mode == policy.Apply && !rule.Leave && !rule.Judged() && rule.Startup.Remedy == "" {
			fmt.Fprintf(out, "note: config line %d: this rule applies nothing: it has neither an slo with a command "+
				"nor verify: probe\n", rule.Line)
		}
	}
	return nil
}

// problems are the mistakes that show on this host only.
func (c agentConfig) problems() (found []string, err error) {
	if err := journal.CheckStateDir(c.write.stateDir); err != nil {
		found = append(found, err.Error())
	}
	mistake, err := c.write.missingScope()
	if err != nil {
		return nil, err
	}
	if mistake != nil {
		found = append(found, mistake.Error())
	}
	for _, rule := range c.rules.Rules {
		if rule.SLOCommand == "" {
			continue
		}
		if err := slo.Check(rule.SLOCommand); err != nil {
			found = append(found, fmt.Sprintf("config line %d: %v", rule.Line, err))
		}
	}
	if c.rules.HasCommands() && c.untrusted != "" && c.rules.Mode == policy.Apply {
		found = append(found, "slo commands of this file must not be run: "+c.untrusted)
	}
	return found, nil
}

// missingScope says why nothing can be watched in the scope; nil: it can, or there is none. err: the cgroups of this host
// cannot be asked.
func (f *writeFlags) missingScope() (mistake, err error) {
	if f.scope == "" {
		return nil, nil
	}
	h, err := openCgroups()
	if err != nil {
		return nil, err
	}
	path, mistake := cleanPrefix(h, "scope", f.scope)
	if mistake != nil {
		return mistake, nil
	}
	if _, err := os.Stat(h.Dir(cgroup.CPU, path)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("scope %.200s: there is no such cgroup: start what is in it, or leave the scope out", path), nil
	}
	return nil, nil
}

// fromRules takes scope and state directory from the file where the command
// line does not give them. Two different scopes are a contradiction.
func (f *writeFlags) fromRules(cmd *cobra.Command, r policy.Rules) error {
	if r.Scope != "" {
		if f.scope != "" && f.scope != r.Scope {
			return fmt.Errorf("--scope %s and the file's scope %s differ: give one of them", f.scope, r.Scope)
		}
		f.scope = r.Scope
	}
	if r.StateDir != "" && !cmd.Flags().Changed("state-dir") {
		f.stateDir = r.StateDir
	}
	return nil
}
