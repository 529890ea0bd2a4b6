package nginx

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// file is the name of a certificate's file, with its key, relative to nginx.conf. A name stands
// for the content: a file is never written twice.
func (c Certificate) file() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d ", len(c.Chain))
	sum.Write(c.Chain)
	sum.Write(c.Key)
	return "certificates/" + hex.EncodeToString(sum.Sum(nil))[:hashLength] + ".pem"
}

// pem is the content of the file.
func (c Certificate) pem() []byte {
	return append(append(bytes.TrimSpace(bytes.Clone(c.Chain)), '\n'), append(bytes.TrimSpace(bytes.Clone(c.Key)), '\n')...)
}

// write writes a file as a whole, or not at all: also if the disk is full, or the power fails.
func write(path string, content []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// writeCertificates writes those that are not there yet.
func (n *Nginx) writeCertificates(c *Config) error {
	for _, id := range sortedKeys(c.Certificates) {
		one := c.Certificates[id]
		path := n.path(one.file())
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := write(path, one.pem()); err != nil {
			return fmt.Errorf("write the certificate of %s: %w", one.Source, err)
		}
	}
	return nil
}

// removeUnused removes certificates that nginx.conf does not name, and other leftovers. Workers
// that are draining have theirs in memory.
func (n *Nginx) removeUnused(c *Config) {
	used := map[string]bool{}
	for _, one := range c.Certificates {
		used[one.file()] = true
	}
	entries, _ := os.ReadDir(n.path("certificates"))
	for _, e := range entries {
		if name := "certificates/" + e.Name(); !used[name] {
			n.remove(name)
		}
	}
	entries, _ = os.ReadDir(n.options.Dir)
	for _, e := range entries {
		old := strings.HasPrefix(e.Name(), "balancer-") && e.Name() != balancerFile()
		if old || strings.HasPrefix(e.Name(), ".new-") {
			n.remove(e.Name())
		}
	}
}

func (n *Nginx) remove(name string) {
	if err := os.Remove(n.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.log.Warn("cannot remove a file that is not needed any more", "error", err)
	}
}

func (n *Nginx) path(name string) string { return filepath.Join(n.options.Dir, name) }
