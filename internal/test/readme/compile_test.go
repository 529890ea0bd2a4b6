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

// Document is a file, and its blocks.
type Document struct {
	Name   string
	Blocks []Block
}

// Compile vets the blocks of documents, each block as a package of its own; that finds also what
// the compiler would. The packages are in a module like a reader's: it requires the module with
// the given root folder, and everything that this requires, at the same versions. So internal
// packages are out of reach. The messages name the document as the path, with the document's own
// line numbers; the error holds these messages.
//
// Compile writes only to a temporary folder, and runs nothing.
func Compile(ctx context.Context, root string, documents ...Document) error {
	tmp, err := os.MkdirTemp("", "readme-*")
	if err != nil {
		return fmt.Errorf("compile blocks: %w", err)
	}
	defer os.RemoveAll(tmp)
	if err := writeModule(ctx, tmp, root); err != nil {
		return fmt.Errorf("compile blocks: %w", err)
	}
	blocks := 0
	for i, d := range documents {
		blocks += len(d.Blocks)
		if err := writeBlocks(filepath.Join(tmp, fmt.Sprintf("document%d", i)), d); err != nil {
			return fmt.Errorf("compile the blocks of %s: %w", d.Name, err)
		}
	}
	if blocks == 0 {
		return nil // go vet would find no package
	}
	return goCommand(ctx, tmp, "vet", "./...")
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

// writeBlocks gives each block of a document a folder of dir.
func writeBlocks(dir string, d Document) error {
	document, err := filepath.Abs(d.Name)
	if err != nil {
		return err
	}
	for _, b := range d.Blocks {
		folder := filepath.Join(dir, fmt.Sprintf("line%d", b.Line))
		if err := os.MkdirAll(folder, 0o700); err != nil {
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
