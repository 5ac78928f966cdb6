package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/agent"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
)

// runAgent runs the agent. At each SIGHUP it reads the file again and starts anew with it: a change on trial is undone,
// and what is in force stays. A file with a mistake changes nothing.
func runAgent(cmd *cobra.Command, f agentFlags, c agentConfig) error {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	if f.watch {
		defer watchFile(cmd.Context(), f.config, hangups)()
	}
	hangupReloads.Store(true)
	defer hangupReloads.Store(false)
	listeners := new(agent.Listeners)
	defer listeners.Close()
	for {
		c.listeners = listeners
		next, err := untilReload(cmd, f, c, hangups)
		if next == nil || err != nil {
			return err
		}
		c = *next
	}
}

// untilReload runs the agent until it ends, then next is nil, or until a hang-up brought a new configuration.
func untilReload(cmd *cobra.Command, f agentFlags, c agentConfig, hangups <-chan os.Signal) (next *agentConfig, err error) {
	ctx, cancel := context.WithCancel(cmd.Context())
	var group sync.WaitGroup
	err = watchOnce(ctx, cmd, c, func(at net.Addr) {
		say("watching; http://%s/metrics; mode %s", at, c.rules.Mode)
		tellSystemd(daemon.SdNotifyReady)
		group.Go(func() {
			defer cancel()
			next = awaitConfig(ctx, cmd, f, c, hangups)
		})
	})
	cancel()
	group.Wait()
	if next != nil {
		next.reloaded = true
		if next.rules.Listen != c.rules.Listen {
			err = errors.Join(err, c.listeners.Close())
		}
	}
	return next, err
}

// awaitConfig waits for a hang-up after which the file has no mistake; nil: ctx ended before. A hang-up while the file is
// read, such as from a pipe whose writer does not come, begins anew.
func awaitConfig(ctx context.Context, cmd *cobra.Command, f agentFlags, now agentConfig, hangups <-chan os.Signal) *agentConfig {
	select {
	case <-ctx.Done():
		return nil
	case <-hangups:
	}
	for {
		next, err := readUntil(ctx, cmd, f, now, hangups)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errReadAgain):
			say("%s is read anew: it took longer than until the next hang-up", f.config)
			continue
		case err == nil:
			say("%s was read again: mode %s", f.config, next.rules.Mode)
			tellSystemd(daemon.SdNotifyReloading)
			return next
		}
		if several := policy.Mistakes(nil); errors.As(err, &several) {
			err = fmt.Errorf("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		say("%s was read again and is refused, the old configuration stays: %v", f.config, err)
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
		}
	}
}

// errReadAgain: a hang-up came before the file was read.
var errReadAgain = errors.New("a hang-up came meanwhile")

// readUntil reads and checks the file once, until a hang-up.
func readUntil(ctx context.Context, cmd *cobra.Command, f agentFlags, now agentConfig, hangups <-chan os.Signal) (*agentConfig, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type outcome struct {
		next agentConfig
		err  error
	}
	read := make(chan outcome, 1)
	go func() {
		next, err := f.read(ctx, cmd)
		if err == nil {
			err = now.canBecome(ctx, next)
		}
		read <- outcome{next, err}
	}()
	select {
	case <-hangups:
		cancel(errReadAgain)
		<-read
		return nil, errReadAgain
	case of := <-read:
		return &of.next, of.err
	}
}

// canBecome says why a running agent cannot go on with another configuration.
func (c agentConfig) canBecome(ctx context.Context, next agentConfig) error {
	if next.write.stateDir != c.write.stateDir {
		return fmt.Errorf("state_dir cannot change from %s to %s while the agent runs, since what is in force stands "+
			"there: restart the agent",
			c.write.stateDir, next.write.stateDir)
	}
	if mistake, err := next.write.missingScope(); mistake != nil || err != nil {
		return errors.Join(mistake, err)
	}
	if next.rules.Listen == c.rules.Listen {
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", next.rules.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w: choose an address that is free", next.rules.Listen, err)
	}
	return l.Close()
}

// tellSystemd tells the service manager that started the agent, if one did (sd_notify(3)).
func tellSystemd(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		say("systemd cannot be told %q: %v", state, err)
	}
}
