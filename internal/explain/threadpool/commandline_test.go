package threadpool

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Real runtimes say which of these words they took.
func TestWordsOfARuntimeForReal(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"app.js": "console.log((process.execArgv.join(' ').match(/.*--v8.pool.size[= ](\\d+)/) || ['', ''])[1])",
		"app.py": "import sys; print(sys._xoptions.get('cpu_count', ''))",
		"App.java": `package p; public class App { public static void main(String[] a) {
			int n = Runtime.getRuntime().availableProcessors(); System.out.println(n == 9 || n == 7 ? n : ""); } }`,
		"none.js": "",
		"nine":    "-XX:ActiveProcessorCount=9\n", "seven": "# -cp x\n-XX:ActiveProcessorCount=7",
		"flags": "# of -XX:Flags\n+UseSerialGC ActiveProcessorCount=9 # x\n", "naming": "-XX:Flags=flags",
		"quoted": "-Da=\"b -XX:ActiveProcessorCount=7\"  '-XX:Active\\\n   ProcessorCount=9'\n", "class": "-cp app.jar p.App",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if jar, err := exec.LookPath("jar"); err == nil {
		for _, command := range [][]string{
			{"javac", "-d", "classes", "App.java"},
			{jar, "-c", "-f", "app.jar", "-e", "p.App", "-C", "classes", "."},
		} {
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", command, err, out)
			}
		}
	}
	all := Known().Settings()
	jvm := all[slices.IndexFunc(all, func(s Setting) bool { return s.Key == "jvm" })]
	py := "import\x00sys;print(sys._xoptions.get('cpu_count',''))"
	for option, lines := range map[string][]string{
		"--v8-pool-size": {
			"node --v8-pool-size=9 app.js", "node --v8_pool_size=9 app.js", "node --v8-pool-size 9 app.js",
			"node app.js --v8-pool-size=9",
			"node -- app.js --v8-pool-size=9", "node --v8-pool-size=7 --v8-pool-size=9 app.js", "node --v8-pool-size=9 -- app.js",
			"node -r ./none.js --v8-pool-size=9 app.js", "node --require ./none.js app.js --v8-pool-size=9",
			"node --require=./none.js --v8-pool-size=9 app.js", "node --stack-trace-limit=5 app.js --v8-pool-size=9",
			"node --title x --v8-pool-size=9 app.js", "node --max_http_header_size 9000 --v8-pool-size=9 app.js",
			"node --unhandled-rejections warn app.js --v8-pool-size=9", "node --no-warnings --v8-pool-size=9 app.js",
		},
		"-X cpu_count": {
			"python3 -X cpu_count=9 app.py", "python3 -Xcpu_count=9 app.py",
			"python3 -uXcpu_count=9 app.py", "python3 -uX cpu_count=9 app.py",
			"python3 app.py -X cpu_count=9", "python3 -W ignore -X cpu_count=9 app.py", "python3 -Wignore app.py -Xcpu_count=9",
			"python3 -X cpu_count=7 -X cpu_count=9 app.py", "python3 -m app -X cpu_count=9", "python3 -X cpu_count=9 -m app",
			"python3 -mapp -Xcpu_count=9", "python3 --check-hash-based-pycs never -X cpu_count=9 app.py",
			"python3 -c " + py + " -X cpu_count=9", "python3 -X cpu_count=9 -c " + py, "python3 -- app.py -X cpu_count=9",
		},
		"-XX:ActiveProcessorCount": {
			"java -XX:ActiveProcessorCount=9 App.java", "java App.java -XX:ActiveProcessorCount=9",
			"java -cp a:b -XX:ActiveProcessorCount=9 App.java", "java -cp . App.java -XX:ActiveProcessorCount=9",
			"java --class-path . -XX:ActiveProcessorCount=9 App.java", "java --source 17 -XX:ActiveProcessorCount=9 App.java",
			"java --add-modules java.base App.java -XX:ActiveProcessorCount=9",
			"java --add-modules=java.base -XX:ActiveProcessorCount=9 App.java",
			"java -XX:ActiveProcessorCount=7 -XX:ActiveProcessorCount=9 App.java",
			"java -jar app.jar -XX:ActiveProcessorCount=9", "java -XX:ActiveProcessorCount=9 -jar app.jar",
			"java -jar -XX:ActiveProcessorCount=9 app.jar", "java -cp app.jar p.App -XX:ActiveProcessorCount=9",
			"java -cp app.jar -XX:ActiveProcessorCount=9 p.App", "java -p app.jar -m app/p.App -XX:ActiveProcessorCount=9",
			"java -p app.jar --module=app/p.App -XX:ActiveProcessorCount=9",
			"java -p app.jar -XX:ActiveProcessorCount=9 --module app/p.App",
			"java @nine App.java",
			"java @seven @nine App.java",
			"java -XX:ActiveProcessorCount=7 @nine App.java",
			"java @nine -XX:ActiveProcessorCount=7 App.java",
			"java App.java @nine",
			"java -jar app.jar @nine",
			"java -cp app.jar @nine p.App",
			"java @quoted App.java",
			"java @class -XX:ActiveProcessorCount=9",
			"java @class @nine",
			"java -XX:Flags=flags App.java",
			"java -XX:Flags=flags -XX:ActiveProcessorCount=7 App.java",
			"java App.java -XX:Flags=flags",
			"java -XX:VMOptionsFile=nine App.java",
			"java -XX:VMOptionsFile=nine -XX:ActiveProcessorCount=7 App.java",
			"java -XX:ActiveProcessorCount=7 -XX:VMOptionsFile=nine App.java",
			"java -XX:VMOptionsFile=naming App.java",
			"JDK_JAVA_OPTIONS=@nine java App.java",
			"JDK_JAVA_OPTIONS=@nine java -XX:ActiveProcessorCount=7 App.java",
			"JAVA_TOOL_OPTIONS=-XX:Flags=flags java App.java",
			"JAVA_TOOL_OPTIONS=-XX:ActiveProcessorCount=7 java -XX:Flags=flags App.java",
			"_JAVA_OPTIONS=-XX:VMOptionsFile=nine java -XX:ActiveProcessorCount=7 App.java",
			"java --add-opens java.base/java.lang=ALL-UNNAMED -XX:ActiveProcessorCount=9 App.java",
		},
	} {
		for _, line := range lines[:min(len(lines), require.Cases(t, 100, 4))] {
			t.Run(line, func(t *testing.T) {
				args := strings.Fields(line)
				for i := range args {
					args[i] = strings.ReplaceAll(args[i], "\x00", " ")
				}
				var env []string
				for strings.Contains(args[0], "JAVA_") {
					env, args = append(env, args[0]), args[1:]
				}
				if _, err := exec.LookPath(args[0]); err != nil {
					t.Skipf("needs %s", args[0])
				}
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				got, _ := Spelling{Option: option}.In(nil, args)
				if option == jvm.Option {
					files := Files(func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, name)) })
					g, _ := jvm.Given(files.Expand(env, args))
					got = g.Value
				}
				if want := strings.TrimSpace(string(out)); got != want {
					t.Errorf("%q, and the runtime says %q", got, want)
				}
			})
		}
	}
}

// What is in a file that cannot be read is not known, unless what counts more says it.
func TestAFileOfOptionsThatCannotBeRead(t *testing.T) {
	all := Known().Settings()
	jvm := all[slices.IndexFunc(all, func(s Setting) bool { return s.Key == "jvm" })]
	for line, want := range map[string]string{
		"java @none Main": "none",
		"java @none -XX:ActiveProcessorCount=9 Main":                  "none", // Main may be in it
		"java -XX:ActiveProcessorCount=9 -XX:VMOptionsFile=none Main": "none",
		"java -XX:VMOptionsFile=none -XX:ActiveProcessorCount=9 Main": "",
		"java -XX:Flags=none Main":                                    "none",
		"java -XX:Flags=none -XX:ActiveProcessorCount=9 Main":         "",
		"java Main @none": "",
	} {
		g, _ := jvm.Given(Files(nil).Expand(nil, strings.Fields(line)))
		if g.Unread != want || g.Otherwise != (want != "") {
			t.Errorf("%s: %+v, want %q unread", line, g, want)
		}
	}
}

// Options that a JVM took from variables and files count, though its class stands before them here.
func TestOptionsOfAJVMBehindItsClass(t *testing.T) {
	p := &Process{Exe: "/usr/bin/java", Cmdline: []string{"java", "-jar", "x.jar", "-XX:ParallelGCThreads=9"},
		JVM: &JVM{Options: []string{"-XX:ParallelGCThreads=6"}}}
	if rows := Known().Match("GC Thread#0", p); len(rows) == 0 || rows[0].Given != "-XX:ParallelGCThreads=6" {
		t.Errorf("%+v", rows)
	}
}
