package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool/identify"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/runtimes"
	"github.com/unthrottle/unthrottle/internal/runtimes/here"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	view "github.com/unthrottle/unthrottle/internal/ui/report/sized"
)

func newSized() *cobra.Command {
	var out output
	var print bool
	var times, asked, tomcat float64
	cmd := &cobra.Command{
		Use:     "sized -- CMD [ARGS]",
		GroupID: groupTry,
		Short:   "Start a program with its runtimes told of the CPU limit",
		Long: `Start a program with its runtimes told of the CPU limit: JVM, Go, Rust, Node,
.NET, OpenMP, OpenBLAS, Python, Ruby, Erlang, nginx and Envoy; in a JVM Netty,
Finagle and, with --tomcat, Spring Boot's Tomcat.

The limit is the least along the path of its own cgroup. Without one it is
--times the request, which is read from the weight of a cgroup of v1.
Variables and flags that are set already stay. CMD replaces this program: no
process stays. Where CMD cannot be run, the exit code is 126, and 127 where it
is not found, as env(1) has it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !print {
				return usage(cmd, "CMD is missing: sized -- CMD [ARGS], or --print to see the settings")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(times > 0) || asked < 0 || cmd.Flags().Changed("request") && asked == 0 {
				return usage(cmd, "--times and --request: give numbers above 0")
			}
			if cmd.Flags().Changed("tomcat") && !(tomcat > 0) {
				return usage(cmd, "--tomcat: give a number above 0")
			}
			l := ownLimits()
			if host := hostCPUs(); host > 0 && asked > float64(host) {
				return usage(cmd, "--request %g: the host has %d CPUs. In the downward API, requests.cpu with divisor 1m gives "+
					"thousandths: %g CPUs", asked, host, asked/1000)
			}
			l.Each = map[string]float64{"tomcat": tomcat}
			if asked > 0 {
				l.Request = asked
			} else if l.CPUs <= 0 && l.Unsure != "" && !print {
				say("there is no CPU limit, and %s", l.Unsure)
			}
			started := runtimes.Plan(threadpool.Known(), l, times, ownOptions, os.Environ(), args)
			switch {
			case print && out.json():
				return jsonout.Write(cmd.OutOrStdout(), "sized", view.New(l, started.Rows))
			case print:
				return view.Write(cmd.OutOrStdout(), view.New(l, started.Rows), outStyle())
			}
			return replace(started)
		},
	}
	out.add(cmd)
	cmd.Flags().SetInterspersed(false) // what follows CMD is CMD's
	cmd.Flags().BoolVar(&print, "print", false, "show the settings, and start nothing")
	decimalVar(cmd, &times, "times", 2, "without a limit: so many times the request")
	decimalVar(cmd, &asked, "request", 0, "the request in CPUs, where the cgroup's weight does not tell it")
	decimalVar(cmd, &tomcat, "tomcat", 0, "Spring Boot's Tomcat: so many threads for each CPU of the limit (default: it decides by itself)")
	return cmd
}

// ownLimits are this process's. A program starts all the same where they cannot be read.
func ownLimits() runtimes.Limits {
	l, err := here.Limits()
	if err != nil {
		say("the CPU limit cannot be read: %v; the program's runtimes decide by themselves", err)
	}
	return l
}

// ownOptions reads a file of options as the program that replaces this one will.
func ownOptions(name string) ([]byte, error) { return identify.Options(os.Getpid(), name) }

// hostCPUs are those that the host has online, whichever of them this process may use; 0: it is not known.
func hostCPUs() int {
	stat, err := procfs.ReadStat(os.DirFS("/proc"))
	if err != nil {
		return 0
	}
	return len(stat.CPUs)
}

// replace starts a program in place of this one.
func replace(s runtimes.Started) error {
	for _, r := range s.Rows {
		if r.Why == runtimes.Kept {
			say("%s is %s already: it stays", r.Setting, text.Sanitize(r.Value, 40))
		}
	}
	file, err := exec.LookPath(s.Args[0])
	if err != nil {
		return notStarted(fmt.Errorf("%s: %w; give the program's path, or a name in PATH", text.Shown(s.Args[0]), err))
	}
	err = unix.Exec(file, s.Args, s.Env)
	return notStarted(fmt.Errorf("%s: start it: %w", text.Shown(file), err))
}

// notStarted has the exit code of env(1), by which shells and supervisors tell a program that is not there from one that failed.
func notStarted(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return exitWith{127, err}
	}
	return exitWith{126, err}
}
