package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/kubernetes/api/v1alpha1"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
)

// notYet are reasons after which the agent goes on by itself.
var notYet = []policy.Reason{policy.ReasonConfirming, policy.ReasonStarting, policy.ReasonTurn, policy.ReasonReplanned, policy.ReasonTrying,
	policy.ReasonBudgetMoves, policy.ReasonNotMeasured}

// remedies are those that a ThrottlePolicy may apply: something judges each of them, or nothing is to be judged.
var remedies = []string{"auto", "secondary", "none"}

type fixOptions struct {
	remedy, mode string
	dry, others  bool
	wait         time.Duration
}

func (p *plugin) newFix() *cobra.Command {
	var o fixOptions
	cmd := p.addPod(&cobra.Command{
		Use:   "fix POD",
		Short: "Ask for a remedy by a ThrottlePolicy, and wait for the verdict",
		Long: `Ask the agents for a remedy: write a ThrottlePolicy for all pods of the
controller that made the pod, such as its Deployment, and wait until the agents
have accepted it, and the one on the pod's node has tried a remedy and judged it.
What does not help is undone by the agent. What a ThrottlePolicy may ask for is
up to the cluster's ClusterThrottlePolicies.

The policy is named after the controller. 'restore' deletes it.`,
		RunE: func(cmd *cobra.Command, args []string) error { return p.fix(cmd.Context(), args[0], o) },
	})
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "write nothing: show the forecast, and the policy that would be written")
	cmd.Flags().StringVar(&o.remedy, "remedy", "auto", "auto: the agent's forecast chooses; secondary: it gets what "+
		"others leave; none: it is left alone")
	cmd.Flags().StringVar(&o.mode, "mode", string(policy.Apply), "apply, or observe: the agents say what they would do")
	cmd.Flags().BoolVar(&o.others, "others", false, "also where the policy's pattern matches pods of other controllers")
	cmd.Flags().DurationVar(&o.wait, "wait", 5*time.Minute, "for how long to wait for the verdict; 0: not at all")
	for flag, words := range map[string][]string{"remedy": remedies, "mode": {string(policy.Apply), string(policy.Observe)}} {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // a flag that is not there
		}
	}
	return cmd
}

func (o fixOptions) check() error {
	if !slices.Contains(remedies, o.remedy) {
		return fmt.Errorf("--remedy %s: a ThrottlePolicy applies %s; another remedy has nothing that could judge it",
			text.Shown(o.remedy), strings.Join(remedies, ", "))
	}
	if o.mode != string(policy.Apply) && o.mode != string(policy.Observe) {
		return fmt.Errorf("--mode %s: give apply or observe", text.Shown(o.mode))
	}
	if o.wait < 0 {
		return fmt.Errorf("--wait %v: give a time of 0 or more", o.wait)
	}
	return nil
}

func (p *plugin) fix(ctx context.Context, name string, o fixOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	c, err := p.connect()
	if err != nil {
		return err
	}
	pod, err := c.pod(ctx, name)
	if err != nil {
		return err
	}
	w, err := c.wish(ctx, pod, o)
	if err != nil {
		return err
	}
	if o.dry {
		return c.dryRun(ctx, pod, w)
	}
	if o.wait == 0 {
		_, err := c.submit(ctx, pod, w)
		return err
	}
	a, err := c.agentAt(ctx, pod) // before anything is written
	if err != nil {
		return err
	}
	defer a.done()
	if _, err := a.policyOf(ctx, pod); err != nil {
		return err
	}
	wrote, err := c.submit(ctx, pod, w)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	if err := c.accepted(ctx, pod.Namespace, w, wrote); err != nil {
		return err
	}
	return a.verdict(ctx, pod, w, o.wait)
}

// wish is what the options ask for a pod, where the pattern matches no pods of others, or that is wanted.
func (c *connected) wish(ctx context.Context, pod *core.Pod, o fixOptions) (wish, error) {
	if err := c.hasContainer(pod); err != nil {
		return wish{}, err
	}
	w := wished(pod, c.container, o.remedy, o.mode)
	list, err := c.client.CoreV1().Pods(pod.Namespace).List(ctx, meta.ListOptions{})
	if err != nil {
		return w, fmt.Errorf("which pods the policy would match cannot be told: %w", err)
	}
	n := 0
	for i := range list.Items {
		if fits(w.match, &list.Items[i]) && ownerOf(&list.Items[i]) == w.of {
			n++
		}
	}
	fmt.Fprintf(c.ErrOut, "for %s of %s: name %s\n", text.Count(n, "pod"), w.of, w.match)
	if also := others(w.of, w.match, list.Items); len(also) > 0 {
		said := fmt.Sprintf("the name %s also matches %s", w.match, strings.Join(also, ", "))
		if !o.others && !o.dry {
			return w, fmt.Errorf("%s: nothing is written; --others asks for the remedy for these too", said)
		}
		fmt.Fprintln(c.ErrOut, "warning:", said)
	}
	return w, nil
}

// hasContainer is an error where the pod has no container of the name that was given.
func (c *connected) hasContainer(pod *core.Pod) error {
	var names []string
	for _, of := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		names = append(names, of.Name)
	}
	if c.container == "" || slices.Contains(names, c.container) {
		return nil
	}
	return fmt.Errorf("--container %s: pod %s/%s has %s", text.Shown(c.container), pod.Namespace, pod.Name, strings.Join(names, ", "))
}

// dryRun shows the forecast, and the policy that would be written, which the API server has checked.
func (c *connected) dryRun(ctx context.Context, pod *core.Pod, w wish) error {
	if w.remedy == "auto" {
		if err := c.forecast(ctx, pod.Name, "", false); err != nil {
			fmt.Fprintln(c.ErrOut, "no forecast:", err)
		} else {
			fmt.Fprintln(c.Out)
		}
	}
	got, err := c.write(ctx, pod.Namespace, w, true)
	if err != nil {
		return err
	}
	shown, err := yaml.Marshal(w.object(pod.Namespace).Object)
	if err != nil {
		return err
	}
	switch {
	case got.made:
		fmt.Fprintln(c.ErrOut, "would be created (dry run):")
	case got.changed:
		fmt.Fprintln(c.ErrOut, "would replace the policy of this name (dry run):")
	default:
		fmt.Fprintln(c.ErrOut, "is there already:")
	}
	_, err = c.Out.Write(shown)
	return err
}

// submit writes the policy, and says so.
func (c *connected) submit(ctx context.Context, pod *core.Pod, w wish) (written, error) {
	got, err := c.write(ctx, pod.Namespace, w, false)
	if err != nil {
		return got, err
	}
	what := "is there already"
	switch {
	case got.made:
		what = "created"
	case got.changed:
		what = "changed"
	}
	fmt.Fprintf(c.ErrOut, "throttlepolicy/%s %s\n", w.name(), what)
	return got, nil
}

// accepted waits until the agents have accepted a policy. One that they refuse, and that was made here, is deleted again.
func (c *connected) accepted(ctx context.Context, namespace string, w wish, wrote written) error {
	objects := c.objects(namespace)
	name := wrote.GetName()
	for {
		now, err := objects.Get(ctx, name, meta.GetOptions{})
		if ctx.Err() != nil {
			return fmt.Errorf("the agents did not look at throttlepolicy/%s in time, which stays: the container "+
				"policies of their pods does (policies.enabled=true of the chart)", name)
		}
		if err != nil {
			return said(err, "get", namespace)
		}
		said, ok := condition(now, v1alpha1.ConditionAccepted)
		switch {
		case ok && said.Status == meta.ConditionTrue:
			if c, ok := condition(now, v1alpha1.ConditionConflicted); ok && c.Status == meta.ConditionTrue {
				return fmt.Errorf("throttlepolicy/%s is accepted and never counts: %s", name, text.Shown(c.Message))
			}
			fmt.Fprintf(c.ErrOut, "throttlepolicy/%s accepted\n", name)
			return nil
		case ok:
			why := fmt.Errorf("the agents do not accept it: %s: %s", text.Shown(said.Reason), text.Shown(said.Message))
			if said.Reason == policies.NotAllowed {
				why = fmt.Errorf("%w. A ClusterThrottlePolicy for namespace %s allows it: 'allow: {mode: %s, "+
					"remedies: [%s]}'", why, namespace, w.mode, w.remedy)
			}
			if !wrote.made {
				return why
			}
			uid := now.GetUID()
			if err := objects.Delete(ctx, name, meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &uid}}); err != nil {
				return errors.Join(why, fmt.Errorf("it could not be deleted again: %w", err))
			}
			return fmt.Errorf("%w. throttlepolicy/%s is deleted again", why, name)
		}
		c.pause(ctx)
	}
}

// pause waits until the next look, or until ctx ends.
func (p *plugin) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(p.poll):
	}
}

// verdict waits until each container of the pod that was asked for is treated by the policy, or the agent has said why not.
func (a *agent) verdict(ctx context.Context, pod *core.Pod, w wish, wait time.Duration) error {
	told := map[string]string{}
	last := "nothing"
	key := keyOf(pod, w)
	for {
		report, err := a.policyOf(ctx, pod)
		unseen := new(notSeen)
		switch {
		case errors.As(err, &unseen) && ctx.Err() == nil:
			last = err.Error()
			a.pause(ctx)
			continue
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return fmt.Errorf("no verdict within %v: the agent last said: %s. The policy stays: 'kubectl unthrottle "+
				"policy %s' shows how it stands, 'kubectl unthrottle restore %[3]s' deletes it", wait, last, pod.Name)
		case ctx.Err() != nil:
			return fmt.Errorf("interrupted: throttlepolicy/%s stays; 'kubectl unthrottle restore %s' deletes it", w.name(), pod.Name)
		case err != nil:
			return err
		}
		pending := false
		for _, container := range report.Containers {
			say := ""
			switch ruled := ruleOf(container); {
			case ruled != key && ruled != "":
				pending, say = true, "the rule of "+text.Shown(ruled)+
					" counts so far: an older policy comes first, and the agent reads its rules once a minute at most"
			case ruled != key:
				pending, say = true, "the agent on node "+a.node+" does not have the policy yet: it reads its rules once a minute at most"
			case container.Remedy == nil && container.Reason != nil && slices.Contains(notYet, *container.Reason):
				pending, say = true, text.Shown(*container.Why)
			}
			if name := text.Shown(container.Name); say != "" && told[name] != say {
				told[name], last = say, say
				fmt.Fprintf(a.ErrOut, "%s: %s\n", name, say)
			}
		}
		if !pending {
			return a.say(report)
		}
		a.pause(ctx)
	}
}

// keyOf names the policy of a wish as the agent does: ThrottlePolicy shop/cart.
func keyOf(pod *core.Pod, w wish) string {
	return policies.Key{Kind: policies.ThrottlePolicy, Namespace: pod.Namespace, Name: w.name()}.String()
}

// ruleOf is the policy that the rule in force for a container was made from; "": none.
func ruleOf(container policy.ReportContainer) string {
	for _, v := range container.Values {
		if v.Name == "policy" {
			return v.Value
		}
	}
	return ""
}

// say shows how each container of the pod stands.
func (a *agent) say(report policy.Document) error {
	if a.output == "json" {
		return a.json(report)
	}
	for _, container := range report.Containers {
		name := text.Shown(container.Name)
		switch {
		case container.Remedy != nil:
			fmt.Fprintf(a.Out, "%s: %s is in force\n", name, text.Shown(*container.Remedy))
		case container.Why != nil:
			fmt.Fprintf(a.Out, "%s: nothing is in force: %s\n", name, text.Shown(*container.Why))
		default:
			fmt.Fprintf(a.Out, "%s: nothing is in force\n", name)
		}
		if container.Remedy == nil && container.Reason != nil && *container.Reason == policy.ReasonObserving {
			fmt.Fprintf(a.Out, "  The agents apply where the policy and the chart both say apply: helm upgrade ... "+
				"--set tier=cure --set mode=apply\n")
		}
	}
	return nil
}
