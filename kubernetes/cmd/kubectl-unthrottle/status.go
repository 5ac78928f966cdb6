package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

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
				status := nodeStatus{Node: a.node}
				err := a.ask(cmd.Context(), "/status", &status.Status)
				if err == nil {
					all = append(all, status)
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
	held := table.New([]table.Column{{Name: "NODE", Least: 8}, {Name: "NAME", Least: 12, Tail: true}, {Name: "REMEDY"},
		{Name: "SINCE"}, {Name: "VERDICT", Fill: true, Least: 8}})
	changes := 0
	for _, n := range all {
		state := "ready"
		for _, why := range []*string{n.NotRecorded, n.NotReady, n.NotHealthy} {
			if why != nil {
				state = text.Shown(*why)
			}
		}
		nodes.Add([]table.Cell{{Text: text.Shown(n.Node)}, {Text: text.Shown(n.Agent.Version)},
			{Text: text.Shown(string(n.Mode))}, {Text: state}})
		for _, f := range n.InForce {
			changes++
			verdict := text.Shown(f.Verdict)
			if f.OnTrial {
				verdict = "on trial"
			}
			held.Add([]table.Cell{{Text: text.Shown(n.Node)}, {Text: text.Shown(f.Name)}, {Text: text.Shown(f.Remedy)},
				{Text: f.Since.UTC().Format(time.RFC3339)}, {Text: verdict}})
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
