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

// Registry stands for something outside of the cluster, which no garbage collector tidies up: a DNS zone, an account with a cloud.
// Both methods may be called again for what they have done already.
type Registry interface {
	// Put says which ConfigMaps there are for a key.
	Put(ctx context.Context, key string, configMaps []string) error
	// Remove removes the key, if it is there.
	Remove(ctx context.Context, key string) error
}

// FileRegistry is a Registry in a file of JSON, for one process at a time. It is never half written.
type FileRegistry struct {
	Path string

	mu sync.Mutex
}

// Put is of [Registry].
func (r *FileRegistry) Put(_ context.Context, key string, configMaps []string) error {
	return r.change(func(all map[string][]string) bool {
		same := slices.Equal(all[key], configMaps)
		all[key] = configMaps
		return !same
	})
}

// Remove is of [Registry].
func (r *FileRegistry) Remove(_ context.Context, key string) error {
	return r.change(func(all map[string][]string) bool {
		_, there := all[key]
		delete(all, key)
		return there
	})
}

// Entries are all that there are.
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

// change writes what edit has made of the entries, if it says that they are others now.
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
