package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// watchdog is a script that runs a program which must not outlive the process that started it. A
// test process may die without a chance to stop its servers: `go test` panics on a time-out, and
// people kill it. The program replaces the shell, so that it has the process number and gets the
// signals that envtest expects. A loop stays in the background and ends when either of the two
// processes ends. A file beside the script holds the process number.
//
// If the process that started it ends first, the loop kills the program and removes the data. Each
// program of a cluster has a loop, and the last one removes what other programs wrote meanwhile. A
// killed program may write for a moment.
const watchdog = `#!/bin/sh
# Runs PROGRAM, and ends it when the process that started it is gone.
parent=$PPID
echo $$ >"$0.pid"
(
	while kill -0 "$parent" && kill -0 $$; do sleep 1; done
	kill -0 "$parent" && exit
	kill -9 $$
	for try in 1 2 3 4 5; do sleep 1; rm -rf DATA && break; done
) </dev/null >/dev/null 2>&1 &
exec PROGRAM "$@"
`

// watched writes a script to dir that runs program with a watchdog, and returns its path. data is
// the folder that is of no use without its owner, the process that runs the script.
func watched(dir, program, data string) (string, error) {
	path := filepath.Join(dir, "run-"+filepath.Base(program))
	script := strings.NewReplacer("exec PROGRAM", "exec "+quoted(program), "DATA", quoted(data)).Replace(watchdog)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("write the script that runs %s: %w", filepath.Base(program), err)
	}
	return path, nil
}

// quoted makes one word of the shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// running returns the number of the process that the script at path runs, or ran last. The
// process leads a group of its own.
func running(path string) (int, error) {
	content, err := os.ReadFile(path + ".pid")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(content)))
}
