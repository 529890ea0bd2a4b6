package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"syscall"
)

// KillEtcd ends etcd as a crash does (SIGKILL), and waits until it is gone. The API servers
// continue without it. Data that was written stays. If etcd does not run, KillEtcd does nothing.
func (c *Cluster) KillEtcd() error {
	if c.etcdDown {
		return nil
	}
	err := signal(c.plane.Etcd.Path, syscall.SIGKILL)
	if err == nil {
		err = gone(c.plane.Etcd.Stop)
	}
	if err != nil {
		return fmt.Errorf("kill etcd: %w", err)
	}
	c.etcdDown = true
	return nil
}

// StartEtcd starts etcd again, with its data and at the same address, and returns when it is
// healthy.
func (c *Cluster) StartEtcd() error {
	if !c.etcdDown {
		return nil
	}
	c.etcdDown = false // Stop must end it even if it does not get healthy
	return runEtcd(c.plane.Etcd)
}

// Revision returns the revision of the newest write.
func (c *Cluster) Revision(ctx context.Context) (int64, error) {
	var answer struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := c.ask(ctx, "kv/range", map[string]any{"key": "AA==", "count_only": true}, &answer); err != nil {
		return 0, err
	}
	return strconv.ParseInt(answer.Header.Revision, 10, 64)
}

// Compact makes etcd forget everything before its newest revision. API servers have etcd do this
// every five minutes. An API server with a watch cache may remember it for a while.
func (c *Cluster) Compact(ctx context.Context) error {
	newest, err := c.Revision(ctx)
	if err != nil {
		return err
	}
	return c.CompactAt(ctx, newest)
}

// CompactAt makes etcd forget everything before a revision.
func (c *Cluster) CompactAt(ctx context.Context, newest int64) error {
	return c.ask(ctx, "kv/compaction", map[string]any{"revision": strconv.FormatInt(newest, 10), "physical": true}, &struct{}{})
}

// ask sends a request to etcd, through its JSON gateway
// (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/).
func (c *Cluster) ask(ctx context.Context, method string, in, out any) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("etcd %s: %w", method, err)
		}
	}()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	url := c.plane.Etcd.URL.JoinPath("v3", method).String()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Close = true // leave no connection
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return json.Unmarshal(answer, out)
}

// Backup is a copy of etcd's data at one moment.
type Backup struct{ dir string }

// Backup copies etcd's data as a snapshot of its disk would. It stops etcd for milliseconds, and
// copies what a crash at that moment would leave. The backup is removed with the cluster.
func (c *Cluster) Backup() (b Backup, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("back etcd up: %w", err)
		}
	}()
	if c.etcdDown {
		return b, errors.New("it does not run")
	}
	b.dir, err = os.MkdirTemp(c.dir, "backup-*")
	if err != nil {
		return b, err
	}
	if err := signal(c.plane.Etcd.Path, syscall.SIGSTOP); err != nil {
		return b, err
	}
	return b, errors.Join(os.CopyFS(b.dir, os.DirFS(c.plane.Etcd.DataDir)), signal(c.plane.Etcd.Path, syscall.SIGCONT))
}

// Restore gives etcd the data of a backup, and with it the old revisions. It ends all API servers
// and etcd, replaces the data, and starts again what ran before. Clients see servers that go away
// and come back with a history that lacks its end.
//
// Operators did this before etcd had --bump-revision
// (https://etcd.io/docs/v3.6/op-guide/recovery/#restoring-with-revision-bump). Restoring a
// machine's disk still does it.
func (c *Cluster) Restore(b Backup) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore etcd: %w", err)
		}
	}()
	var ran []*Server
	for _, s := range c.servers {
		if s.up {
			ran = append(ran, s)
		}
		if err := s.Kill(); err != nil {
			return err
		}
	}
	if err := c.KillEtcd(); err != nil {
		return err
	}
	data := c.plane.Etcd.DataDir
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	if err := os.CopyFS(data, os.DirFS(b.dir)); err != nil {
		return err
	}
	if err := os.Chmod(data, 0o700); err != nil {
		return err
	}
	if err := c.StartEtcd(); err != nil {
		return err
	}
	for _, s := range ran {
		if err := s.Start(); err != nil {
			return err
		}
	}
	return nil
}
