package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// run runs a command in a folder, with these variables beside the process's own, and returns what
// it prints. What it prints to standard error is part of the error.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	// A variable that is there twice has its last value.
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "PWD="+dir), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String())
		if said == "" {
			said = strings.TrimSpace(stdout.String())
		}
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said)
	}
	return stdout.String(), nil
}

// trustEveryOwner has git work in a checkout that belongs to another user, as that of continuous
// integration may, until the function that it returns is called. git reads this from a file alone:
// what it is told otherwise it does not pass on to the git that it clones from.
func trustEveryOwner() (undo func(), err error) {
	const name = "GIT_CONFIG_GLOBAL"
	file, err := os.CreateTemp("", "gitconfig-*")
	if err != nil {
		return nil, err
	}
	before, had := os.LookupEnv(name)
	undo = func() {
		_ = os.Remove(file.Name())
		if _ = os.Unsetenv(name); had {
			_ = os.Setenv(name, before)
		}
	}
	_, err = file.WriteString("[safe]\n\tdirectory = *\n")
	if err = errors.Join(err, file.Close(), os.Setenv(name, file.Name())); err != nil {
		undo()
		return nil, err
	}
	return undo, nil
}

// git runs git in a folder.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	return run(ctx, dir, nil, "git", args...)
}

// gitFiles returns the files of a work tree by their paths with slashes: those that are committed,
// and, as the next commit would have them, the others that are not ignored.
func gitFiles(ctx context.Context, dir string) (files []string, err error) {
	listed, err := git(ctx, dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	if err != nil {
		return nil, err
	}
	for _, file := range strings.Split(strings.TrimSuffix(listed, "\x00"), "\x00") {
		if _, err := os.Lstat(dir + "/" + file); err == nil { // else it is removed, and not yet committed
			files = append(files, file)
		}
	}
	return files, nil
}

// goEnv returns a variable of the go command.
func goEnv(ctx context.Context, name string) (string, error) {
	value, err := run(ctx, os.TempDir(), nil, "go", "env", name)
	return strings.TrimSpace(value), err
}
