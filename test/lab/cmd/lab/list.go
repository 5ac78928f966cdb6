package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/test/lab"
	"github.com/unthrottle/unthrottle/test/lab/fetch"
)

func listCommand(o *options) *cobra.Command {
	var topologies, kernels bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the topologies and kernels on offer, and what each has",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if topologies || kernels {
				return listPlain(cmd.OutOrStdout(), topologies, kernels)
			}
			cache, err := o.cache(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "TOPOLOGY\tCPUS\tNUMA NODES\tL3S\t--smp\t--l3\tFOR")
			for _, t := range lab.Topologies() {
				m, err := lab.ParseMachine(t.SMP, t.L3s, lab.NUMAPerSocket)
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%d\t%s\n", t.Name, m.CPUs(), m.NUMANodes(),
					m.Sockets*m.L3sPerSocket, t.SMP, t.L3s, t.For)
			}
			fmt.Fprintln(w, "\nKERNEL\tSCHED_EXT\tBTF\tPSI\tV1 CPUSET\tBANDWIDTH CONTROL\tIN THE CACHE")
			for _, l := range fetch.Lines() {
				cached := "-"
				if m, ok := cache.Cached(l); ok {
					cached = m.Version
					if m.Note != "" {
						cached += " (" + m.Note + ")"
					}
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Name, yes(l.SchedExt), yes(l.BTF), yes(l.PSI),
					yes(l.CpusetV1), l.Era, cached)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), "\n"+strings.TrimSpace(`
Any arrangement can be asked for with --smp and --l3; these are the tested ones.
Kernels without v1 cpuset run cgroup v2 only: v1 with many CPUs is covered by
fake trees in the packages' tests, and by lab run --kernel 6.1 --cgroup v1.`)+"\n")
			return err
		},
	}
	cmd.Flags().BoolVar(&topologies, "topologies", false, "only topologies, for scripts: name, --smp, --l3")
	cmd.Flags().BoolVar(&kernels, "kernels", false, "only the names of kernels, for scripts")
	return cmd
}

func listPlain(w io.Writer, topologies, kernels bool) error {
	if topologies {
		for _, t := range lab.Topologies() {
			if _, err := fmt.Fprintln(w, t.Name, t.SMP, t.L3s); err != nil {
				return err
			}
		}
	}
	if kernels {
		for _, l := range fetch.Lines() {
			if _, err := fmt.Fprintln(w, l.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func fetchCommand(o *options) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "fetch [KERNEL...]",
		Short: "Fill the cache: QEMU and the default kernel, or the kernels named",
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, err := o.cache(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if all && len(args) > 0 {
				return errors.New("--all and names of kernels exclude each other")
			}
			if len(args) == 0 {
				args = []string{fetch.DefaultLine}
			}
			if all {
				args = nil
				for _, l := range fetch.Lines() {
					args = append(args, l.Name)
				}
			}
			e, err := cache.Emulator(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "qemu %s\n", e.Version)
			for _, name := range args {
				line, err := fetch.FindLine(name)
				if err != nil {
					return err
				}
				k, err := cache.Kernel(cmd.Context(), line)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "kernel %s %s\n", line.Name, k.Version)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every kernel that lab list shows")
	return cmd
}
