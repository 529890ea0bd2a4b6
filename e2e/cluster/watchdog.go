package cluster

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
const watchdog = `#!/bin/sh
# Runs PROGRAM, and ends it when the process that started it is gone.
parent=$PPID
echo $$ >"$0.pid"
(
	while kill -0 "$parent" && kill -0 $$; do sleep 1; done
	kill -0 "$parent" || kill -9 $$
) </dev/null >/dev/null 2>&1 &
exec PROGRAM "$@"
`

// watched writes a script to dir that runs program with a watchdog, and returns its path.
func watched(dir, program string) (string, error) {
	path := filepath.Join(dir, "run-"+filepath.Base(program))
	quoted := "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	script := strings.Replace(watchdog, "exec PROGRAM", "exec "+quoted, 1)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("write the script that runs %s: %w", filepath.Base(program), err)
	}
	return path, nil
}

// running returns the number of the process that the script at path runs, or ran last. The
// process leads a group of its own.
func running(path string) (int, error) {
	content, err := os.ReadFile(path + ".pid")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(content)))
}
