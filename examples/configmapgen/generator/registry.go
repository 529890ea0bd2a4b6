package generator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Registry stands for something outside of the cluster that no garbage collector cleans up: a DNS
// zone, an account with a cloud. Both methods may be called again for work that is done already.
type Registry interface {
	// Put stores the names of a key's ConfigMaps.
	Put(ctx context.Context, key string, configMaps []string) error
	// Remove removes the key if it exists.
	Remove(ctx context.Context, key string) error
}

// FileRegistry is a Registry in a JSON file, for one process at a time. The file is never half
// written.
type FileRegistry struct {
	Path string

	mu sync.Mutex
}

// Put implements [Registry].
func (r *FileRegistry) Put(_ context.Context, key string, configMaps []string) error {
	return r.change(func(all map[string][]string) bool {
		same := slices.Equal(all[key], configMaps)
		all[key] = configMaps
		return !same
	})
}

// Remove implements [Registry].
func (r *FileRegistry) Remove(_ context.Context, key string) error {
	return r.change(func(all map[string][]string) bool {
		_, there := all[key]
		delete(all, key)
		return there
	})
}

// Entries returns all entries.
func (r *FileRegistry) Entries() (map[string][]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read()
}

func (r *FileRegistry) read() (map[string][]string, error) {
	all := map[string][]string{}
	content, err := os.ReadFile(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the registry %s: %w", r.Path, err)
	}
	return all, nil
}

// change writes the entries after edit, if edit returns true.
func (r *FileRegistry) change(edit func(map[string][]string) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, err := r.read()
	if err != nil || !edit(all) {
		return err
	}
	content, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	next := filepath.Join(filepath.Dir(r.Path), "."+filepath.Base(r.Path)+".next")
	if err = os.WriteFile(next, append(content, '\n'), 0o600); err == nil {
		err = os.Rename(next, r.Path)
	}
	if err != nil {
		return fmt.Errorf("write the registry: %w", err)
	}
	return nil
}
