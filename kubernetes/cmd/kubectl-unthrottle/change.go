package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// takesIn is for how long the agent may not know a new annotation yet.
	takesIn   = 30 * time.Second
	pollEvery = time.Second
)

// notYet are reasons after which the agent goes on by itself.
var notYet = []policy.Reason{policy.ReasonConfirming, policy.ReasonStarting, policy.ReasonTurn, policy.ReasonReplanned}

func (p *plugin) newFix() *cobra.Command {
	var dry bool
	var remedy string
	var wait time.Duration
	cmd := p.addPod(&cobra.Command{
		Use:   "fix POD",
		Short: "Ask the agent for a remedy by the pod's annotation, and wait for its verdict",
		Long: `Ask the agent of the pod's node for a remedy: write the annotation
unthrottle.dev/remedy, wait until the agent has taken it in, tried the remedy
and judged it, and show its verdict. The agent's rules decide what an annotation
may ask for, and undo what does not help. It counts for all containers of the pod.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.container != "" {
				return errors.New("--container: an annotation is of the whole pod; leave the flag out")
			}
			ctx := cmd.Context()
			if dry {
				if err := p.forecast(ctx, args[0], "", false); err != nil {
					return err
				}
				fmt.Fprintf(p.ErrOut, "would annotate pod %s: %s=%s (dry run)\n", text.Shown(args[0]), policy.AnnotationRemedy, text.Shown(remedy))
				return nil
			}
			c, err := p.connect()
			if err != nil {
				return err
			}
			pod, err := c.pod(ctx, args[0])
			if err != nil {
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
			if err := c.annotate(ctx, pod, &remedy); err != nil {
				return err
			}
			fmt.Fprintf(p.ErrOut, "pod/%s annotated: %s=%s\n", pod.Name, policy.AnnotationRemedy, text.Shown(remedy))
			return a.verdict(ctx, pod, remedy, wait)
		},
	})
	cmd.Flags().BoolVar(&dry, "dry-run", false, "write nothing: show the forecast, and what it chooses")
	cmd.Flags().StringVar(&remedy, "remedy", "auto", "`NAME` of the remedy; auto: the agent's forecast chooses")
	cmd.Flags().DurationVar(&wait, "wait", 5*time.Minute, "for how long to wait for the verdict; 0: not at all")
	return cmd
}

// annotate writes the annotation; nil removes it.
func (c *connected) annotate(ctx context.Context, pod *core.Pod, value *string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "annotations": map[string]*string{policy.AnnotationRemedy: value}}})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, meta.PatchOptions{FieldManager: "kubectl-unthrottle"})
	return err
}

// verdict waits until each container of the pod is treated, or the agent has said why not.
func (a *agent) verdict(ctx context.Context, pod *core.Pod, remedy string, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	begun, told := time.Now(), ""
	for {
		report, err := a.policyOf(ctx, pod)
		if err != nil {
			return err
		}
		taken, pending := true, false
		for _, of := range report.Containers {
			for _, r := range of.Refused {
				if r.Annotation == policy.AnnotationRemedy && r.Value == remedy {
					return fmt.Errorf("%s: the agent does not do what the annotation asks: %s; 'kubectl unthrottle restore %s' removes it", text.Shown(of.Name), text.Shown(r.Why), pod.Name)
				}
			}
			taken = taken && slices.ContainsFunc(of.Values, func(v policy.Value) bool {
				return v.Name == "remedy" && v.From == policy.FromAnnotation && v.Value == remedy
			})
			pending = pending || of.Remedy == nil && of.Reason != nil && slices.Contains(notYet, *of.Reason)
			if of.Why != nil && told != *of.Why {
				told = *of.Why
				fmt.Fprintf(a.ErrOut, "%s: %s\n", text.Shown(of.Name), text.Shown(told))
			}
		}
		if taken && !pending {
			return a.say(report)
		}
		waited := time.Since(begun)
		if !taken && waited > min(takesIn, wait) {
			return fmt.Errorf("the agent on node %s has not taken the annotation in: the runtime tells it a pod's annotations when the pod is made, so that it counts for the next pod; "+
				"put %s: %s into the pod template of its owner. 'kubectl unthrottle restore %s' removes it here", a.node, policy.AnnotationRemedy, text.Shown(remedy), pod.Name)
		}
		if waited > wait {
			return fmt.Errorf("no verdict within %v: 'kubectl unthrottle policy %s' shows how it stands; the annotation stays", wait, pod.Name)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("interrupted: the annotation stays; 'kubectl unthrottle restore %s' removes it", pod.Name)
		case <-time.After(pollEvery):
		}
	}
}

// say shows how each container of the pod stands.
func (a *agent) say(report policy.Document) error {
	if a.output == "json" {
		return a.json(report)
	}
	for _, of := range report.Containers {
		switch {
		case of.Remedy != nil:
			fmt.Fprintf(a.Out, "%s: %s is in force\n", text.Shown(of.Name), text.Shown(*of.Remedy))
		case of.Why != nil:
			fmt.Fprintf(a.Out, "%s: nothing is in force: %s\n", text.Shown(of.Name), text.Shown(*of.Why))
		default:
			fmt.Fprintf(a.Out, "%s: nothing is in force\n", text.Shown(of.Name))
		}
	}
	return nil
}

func (p *plugin) newRestore() *cobra.Command {
	return p.addPod(&cobra.Command{
		Use:   "restore POD",
		Short: "Remove the pod's annotation, and say what is still in force",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, err := p.connect()
			if err != nil {
				return err
			}
			pod, err := c.pod(ctx, args[0])
			if err != nil {
				return err
			}
			if _, there := pod.Annotations[policy.AnnotationRemedy]; there {
				if err := c.annotate(ctx, pod, nil); err != nil {
					return err
				}
				fmt.Fprintf(p.ErrOut, "pod/%s: annotation %s removed\n", pod.Name, policy.AnnotationRemedy)
			} else {
				fmt.Fprintf(p.ErrOut, "pod/%s has no annotation %s\n", pod.Name, policy.AnnotationRemedy)
			}
			a, err := c.agentAt(ctx, pod)
			if err != nil {
				return fmt.Errorf("what is still in force cannot be told: %w", err)
			}
			defer a.done()
			report, err := a.policyOf(ctx, pod)
			if err != nil {
				return err
			}
			for _, of := range report.Containers {
				if of.Remedy != nil {
					fmt.Fprintf(p.ErrOut, "%s: %s stays in force until the pod ends, or until 'unthrottle restore' on node %s\n", text.Shown(of.Name), text.Shown(*of.Remedy), a.node)
				}
			}
			return a.say(report)
		},
	})
}
