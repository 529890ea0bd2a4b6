package readme

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// modulePath is the module that the document is about.
const modulePath = "github.com/kates-go/kates"

// Compile builds and vets blocks, each as a package of its own. The packages are in a module like
// a reader's: it requires the module with the given root folder, and everything that this
// requires, at the same versions. So internal packages are out of reach. The compiler's messages
// name document as the path, with the document's own line numbers; the error holds these
// messages.
//
// Compile writes only to a temporary folder, and runs nothing.
func Compile(ctx context.Context, root, document string, blocks []Block) error {
	if len(blocks) == 0 {
		return nil
	}
	tmp, err := os.MkdirTemp("", "readme-*")
	if err != nil {
		return fmt.Errorf("compile the blocks of %s: %w", document, err)
	}
	defer os.RemoveAll(tmp)
	if err := writeModule(ctx, tmp, root); err != nil {
		return fmt.Errorf("compile the blocks of %s: %w", document, err)
	}
	if err := writeBlocks(tmp, document, blocks); err != nil {
		return fmt.Errorf("compile the blocks of %s: %w", document, err)
	}
	for _, command := range [][]string{
		{"build", "-o", os.DevNull, "./..."},
		{"vet", "./..."},
	} {
		if err := goCommand(ctx, tmp, command...); err != nil {
			return fmt.Errorf("compile the blocks of %s: %w", document, err)
		}
	}
	return nil
}

// writeModule makes dir a module that uses the module in folder root.
func writeModule(ctx context.Context, dir, root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return goCommand(ctx, dir, "mod", "edit",
		"-module=example.com/reader",
		"-require="+modulePath+"@v0.0.0",
		"-replace="+modulePath+"="+root)
}

// writeBlocks gives each block a folder of dir.
func writeBlocks(dir, document string, blocks []Block) error {
	document, err := filepath.Abs(document)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		folder := filepath.Join(dir, fmt.Sprintf("line%d", b.Line))
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
		source := fmt.Sprintf("//line %s:%d\n%s", document, b.Line, b.Source)
		if err := os.WriteFile(filepath.Join(folder, "block.go"), []byte(source), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// goCommand runs the go command in dir; its output is part of the error.
func goCommand(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, out)
	}
	return nil
}
