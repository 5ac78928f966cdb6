package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	lsview "github.com/unthrottle/unthrottle/internal/ui/report/ls"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
)

func (p *plugin) newTop() *cobra.Command {
	var watch bool
	var node string
	cmd := &cobra.Command{
		Use: "top", Aliases: []string{"ls"}, Args: cobra.NoArgs,
		Short: "List containers, the most stopped first, and by whose quota",
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
