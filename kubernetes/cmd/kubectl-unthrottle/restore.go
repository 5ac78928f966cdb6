package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/text"
)

func (p *plugin) newRestore() *cobra.Command {
	var wait time.Duration
	cmd := p.addPod(&cobra.Command{
		Use:   "restore POD",
		Short: "Delete the policy that fix wrote, and say what is still in force",
		Long: `Delete the ThrottlePolicy that 'fix' wrote for the controller of a pod, wait
until the agent on the pod's node has let its rule go, and say what is still in force.

An agent whose rule goes treats no further containers by it, and undoes what it
is trying. A remedy that it has kept stays in force until the container ends, or
until 'unthrottle restore' in the agent's pod, whose command is shown.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if wait < 0 {
				return fmt.Errorf("--wait %v: give a time of 0 or more", wait)
			}
			return p.restore(cmd.Context(), args[0], wait)
		},
	})
	cmd.Flags().DurationVar(&wait, "wait", 3*time.Minute, "for how long to wait for the agent; 0: not at all")
	return cmd
}

func (p *plugin) restore(ctx context.Context, name string, wait time.Duration) error {
	c, err := p.connect()
	if err != nil {
		return err
	}
	pod, err := c.pod(ctx, name)
	if err != nil {
		return err
	}
	if err := c.hasContainer(pod); err != nil {
		return err
	}
	w := wished(pod, c.container, "", "")
	if err := c.remove(ctx, pod, w); err != nil {
		return err
	}
	a, err := c.agentAt(ctx, pod)
	if err != nil {
		return fmt.Errorf("what is still in force cannot be told: %w", err)
	}
	defer a.done()
	report, err := a.letGo(ctx, pod, w, wait)
	if err != nil {
		return err
	}
	if err := a.say(report); err != nil {
		return err
	}
	for _, reportContainer := range report.Containers {
		if reportContainer.Remedy != nil {
			fmt.Fprintf(p.ErrOut, "%s: %s stays in force until the container ends, or until:\n  kubectl -n %s exec "+
				"%s -c agent -- unthrottle restore %[1]s\n",
				text.Shown(reportContainer.Name), text.Shown(*reportContainer.Remedy), a.pod.Namespace, a.pod.Name)
		}
		if by := ruleOf(reportContainer); by != "" && by != keyOf(pod, w) {
			fmt.Fprintf(p.ErrOut, "%s: now the rule of %s counts\n", text.Shown(reportContainer.Name), text.Shown(by))
		}
	}
	return nil
}

// remove deletes the policy of a wish, if there is one, and says so.
func (c *connected) remove(ctx context.Context, pod *core.Pod, w wish) error {
	was, err := c.there(ctx, pod.Namespace, w)
	if err != nil {
		return err
	}
	if was == nil {
		fmt.Fprintf(c.ErrOut, "there is no throttlepolicy/%s in namespace %s\n", w.name(), pod.Namespace)
		return nil
	}
	uid := was.GetUID()
	if err := c.objects(pod.Namespace).Delete(ctx, w.name(),
		meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &uid}}); err != nil {
		return said(err, "delete", pod.Namespace)
	}
	fmt.Fprintf(c.ErrOut, "throttlepolicy/%s deleted: the rule for %s goes\n", w.name(), w.of)
	return nil
}

// letGo waits until no container of the pod has a rule of the policy.
func (a *agent) letGo(ctx context.Context, pod *core.Pod, w wish, wait time.Duration) (policy.Document, error) {
	key := keyOf(pod, w)
	waits, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	told := false
	for {
		report, err := a.policyOf(ctx, pod)
		if unseen := new(notSeen); errors.As(err, &unseen) && waits.Err() == nil {
			a.pause(waits)
			continue
		}
		if err != nil {
			return report, err
		}
		has := false
		for _, container := range report.Containers {
			has = has || ruleOf(container) == key
		}
		switch {
		case !has:
			return report, nil
		case ctx.Err() != nil:
			return report, errors.New("interrupted: the policy is deleted; the agent lets its rule go within a minute or two")
		case waits.Err() != nil:
			fmt.Fprintf(a.ErrOut, "the agent on node %s still has the rule of the policy: it reads its rules once a "+
				"minute at most\n", a.node)
			return report, nil
		case !told:
			told = true
			fmt.Fprintf(a.ErrOut, "waiting until the agent on node %s has let the rule go: it reads its rules once a "+
				"minute at most\n", a.node)
		}
		a.pause(waits)
	}
}
