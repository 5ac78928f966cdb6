package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	core "k8s.io/api/core/v1"

	"github.com/unthrottle/unthrottle/internal/cure/agent/answers"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
	lsview "github.com/unthrottle/unthrottle/internal/ui/report/ls"
	"github.com/unthrottle/unthrottle/internal/ui/report/page"
	policyview "github.com/unthrottle/unthrottle/internal/ui/report/policy"
	"github.com/unthrottle/unthrottle/internal/ui/report/table"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
)

func (p *plugin) newTop() *cobra.Command {
	var watch bool
	var node string
	cmd := &cobra.Command{
		Use: "top", Aliases: []string{"ls"}, Args: cobra.NoArgs,
		Short: "List containers, the most stopped first, and whose quota stopped them",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.connect()
			if err != nil {
				return err
			}
			for {
				seen, err := c.containers(cmd.Context(), node)
				if err != nil {
					return err
				}
				if watch && terminal.FullScreen(os.Stdout) {
					fmt.Fprint(p.Out, "\x1b[H\x1b[2J")
				}
				if err := p.list(seen); err != nil || !watch {
					return err
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(2 * time.Second):
				}
			}
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "look every two seconds, until interrupted")
	cmd.Flags().BoolVarP(&p.allNamespaces, "all-namespaces", "A", false, "of all namespaces that you may see")
	cmd.Flags().StringVar(&node, "node", "", "of this `NODE` alone")
	return cmd
}

// each asks the readers of all nodes, or of one. A node that cannot be asked is said, and is an error only if none can.
func (c *connected) each(ctx context.Context, node string, ask func(*agent) error) error {
	pods, err := c.agents(ctx, node)
	if err != nil {
		return err
	}
	var failed []error
	for i := range pods {
		err := func() error {
			a, err := c.agentOf(ctx, &pods[i])
			if err != nil {
				return err
			}
			defer a.done()
			return ask(a)
		}()
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) == len(pods) {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		fmt.Fprintln(c.ErrOut, "warning:", err)
	}
	return nil
}

func (c *connected) containers(ctx context.Context, node string) (seen []observe.Observation, err error) {
	err = c.each(ctx, node, func(a *agent) error {
		var all answers.Containers
		if err := a.ask(ctx, "/containers", &all); err != nil {
			return err
		}
		for i := range all.Containers {
			if item := &all.Containers[i]; c.allNamespaces || item.Namespace != nil && *item.Namespace == c.namespace {
				seen = append(seen, item.Observation())
			}
		}
		return nil
	})
	if err == nil && len(seen) == 0 {
		where := "in namespace " + c.namespace
		if c.allNamespaces {
			where = "in any namespace"
		}
		fmt.Fprintf(c.ErrOut, "No containers found %s that you may see.\n", where)
	}
	return seen, err
}

func (p *plugin) list(seen []observe.Observation) error {
	if p.output == "json" {
		return lsview.JSON(p.Out, seen)
	}
	if len(seen) == 0 {
		return nil
	}
	o := lsview.Options{Wide: p.output == "wide"}
	if out, ok := p.Out.(*os.File); ok && terminal.Bounded(out) {
		o.Width, o.Color, o.ASCII = terminal.Width(out), terminal.Color(out), terminal.ASCII()
	}
	return lsview.Write(p.Out, seen, o)
}

// style is how text looks where it goes.
func (p *plugin) style() page.Style {
	if out, ok := p.Out.(*os.File); ok {
		return terminal.Style(out)
	}
	return page.Style{}
}

func (p *plugin) json(document any) error {
	encode := json.NewEncoder(p.Out)
	encode.SetIndent("", "  ")
	encode.SetEscapeHTML(false)
	return encode.Encode(document)
}

// nodeStatus is one node in `status -o json`.
type nodeStatus struct {
	Node string `json:"node"`
	answers.Status
}

func (p *plugin) newStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Args: cobra.NoArgs,
		Short: "Show each node's agent, and which remedies are in force",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.connect()
			if err != nil {
				return err
			}
			var all []nodeStatus
			err = c.each(cmd.Context(), "", func(a *agent) error {
				of := nodeStatus{Node: a.node}
				err := a.ask(cmd.Context(), "/status", &of.Status)
				if err == nil {
					all = append(all, of)
				}
				return err
			})
			if err != nil {
				return err
			}
			if p.output == "json" {
				return p.json(map[string]any{"schema": "kubectl_status", "version": 1, "nodes": all})
			}
			return p.showStatus(all)
		},
	}
}

func (p *plugin) showStatus(all []nodeStatus) error {
	out := page.New(p.style(), 0, 0)
	nodes := table.New([]table.Column{{Name: "NODE", Least: 8}, {Name: "AGENT"}, {Name: "MODE"}, {Name: "STATE", Fill: true, Least: 20}})
	held := table.New([]table.Column{{Name: "NODE", Least: 8}, {Name: "NAME", Least: 12, Tail: true}, {Name: "REMEDY"}, {Name: "SINCE"}, {Name: "VERDICT", Fill: true, Least: 8}})
	changes := 0
	for _, n := range all {
		state := "ready"
		for _, why := range []*string{n.NotRecorded, n.NotReady, n.NotHealthy} {
			if why != nil {
				state = text.Shown(*why)
			}
		}
		nodes.Add([]table.Cell{{Text: text.Shown(n.Node)}, {Text: text.Shown(n.Agent.Version)}, {Text: text.Shown(string(n.Mode))}, {Text: state}})
		for _, f := range n.InForce {
			changes++
			verdict := text.Shown(f.Verdict)
			if f.OnTrial {
				verdict = "on trial"
			}
			held.Add([]table.Cell{{Text: text.Shown(n.Node)}, {Text: text.Shown(f.Name)}, {Text: text.Shown(f.Remedy)}, {Text: f.Since.UTC().Format(time.RFC3339)}, {Text: verdict}})
		}
	}
	nodes.Fit(out.Columns)
	nodes.Write(out, true)
	out.Line("")
	if changes == 0 {
		out.Line("No remedy is in force on a container that you may see.")
		return out.Send(p.Out)
	}
	held.Fit(out.Columns)
	held.Write(out, true)
	return out.Send(p.Out)
}

func (p *plugin) newPolicy() *cobra.Command {
	return p.addPod(&cobra.Command{
		Use:   "policy POD",
		Short: "Show every value in force for a pod's containers, its source, and why one is not treated",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.connect()
			if err != nil {
				return err
			}
			pod, err := c.pod(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			a, err := c.agentAt(cmd.Context(), pod)
			if err != nil {
				return err
			}
			defer a.done()
			report, err := a.policyOf(cmd.Context(), pod)
			if err != nil {
				return err
			}
			if p.output == "json" {
				return p.json(report)
			}
			for i, of := range report.Containers {
				if i > 0 {
					fmt.Fprintln(p.Out)
				}
				if err := policyview.Container(p.Out, report.Config, of, p.style()); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// policyOf is the policy of the containers of a pod that are asked for.
func (a *agent) policyOf(ctx context.Context, pod *core.Pod) (policy.Document, error) {
	var report policy.Document
	if err := a.ask(ctx, "/policy", &report); err != nil {
		return report, err
	}
	report.Containers = slices.DeleteFunc(report.Containers, func(of policy.ReportContainer) bool { return !a.isOf(pod, of.Namespace, of.Pod, of.Container) })
	if len(report.Containers) == 0 {
		return report, a.notSeen(pod)
	}
	return report, nil
}

// isOf reports whether names are those of a pod's container that is asked for.
func (a *agent) isOf(pod *core.Pod, namespace, name, container *string) bool {
	return namespace != nil && name != nil && *namespace == pod.Namespace && *name == pod.Name &&
		(a.container == "" || container != nil && *container == a.container)
}

func (a *agent) notSeen(pod *core.Pod) error {
	what := fmt.Sprintf("pod %s/%s", pod.Namespace, pod.Name)
	if a.container != "" {
		what = fmt.Sprintf("container %s of %s", text.Shown(a.container), what)
	}
	return fmt.Errorf("the agent on node %s shows you nothing of %s: it has not seen it run, it does not know its names yet, or the user of your token may not get pods in namespace %s", a.node, what, pod.Namespace)
}
