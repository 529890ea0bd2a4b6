package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
)

// Change is one write to etcd: a key has got another value, or was deleted.
type Change struct {
	Key      string // such as /registry/pods/default/a
	Value    []byte // as the API server stores it; nil: the key was deleted
	Revision int64  // the resource version of what is stored, or of the deletion
}

// History calls take with every change since a revision, and with that one, in the order in which
// etcd made them. It is the truth that all API servers tell from. Values are in JSON if the API
// servers have the flag "storage-media-type=application/json".
//
// It returns nil when ctx has ended, and an error when etcd goes away or has compacted the
// revision. To go on, call it again with the revision after the last one that take got.
func (c *Cluster) History(ctx context.Context, sinceRevision int64, take func(Change)) (err error) {
	defer func() {
		switch {
		case ctx.Err() != nil:
			err = nil
		case err != nil:
			err = fmt.Errorf("etcd's history: %w", err)
		}
	}()
	// A key and an end of one zero byte mean all keys. So each revision has a change, and the
	// reader can tell whether it has come to a certain one.
	everything := map[string]any{"key": "AA==", "range_end": "AA==", "start_revision": strconv.FormatInt(sinceRevision, 10)}
	body, err := json.Marshal(map[string]any{"create_request": everything})
	if err != nil {
		return err
	}
	url := c.plane.Etcd.URL.JoinPath("v3", "watch").String()
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
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	for lines := json.NewDecoder(resp.Body); ; {
		var line watchMessage
		if err := lines.Decode(&line); err != nil {
			return err
		}
		if err := line.changes(take); err != nil {
			return err
		}
	}
}

// watchMessage is one message of a watch, as etcd's gateway sends it.
type watchMessage struct {
	Result struct {
		Canceled        bool   `json:"canceled"`
		CancelReason    string `json:"cancel_reason"`
		CompactRevision string `json:"compact_revision"`
		Events          []struct {
			Type string `json:"type"` // absent: a PUT
			KV   struct {
				Key         []byte `json:"key"`
				Value       []byte `json:"value"`
				ModRevision string `json:"mod_revision"`
			} `json:"kv"`
		} `json:"events"`
	} `json:"result"`
	Error json.RawMessage `json:"error"`
}

func (w *watchMessage) changes(take func(Change)) error {
	if w.Error != nil {
		return errors.New(string(w.Error))
	}
	if r := w.Result; r.Canceled {
		return fmt.Errorf("the watch is cancelled: %s (compacted at %q)", r.CancelReason, r.CompactRevision)
	}
	for _, e := range w.Result.Events {
		revision, err := strconv.ParseInt(e.KV.ModRevision, 10, 64)
		if err != nil {
			return err
		}
		change := Change{Key: string(e.KV.Key), Revision: revision}
		if e.Type != "DELETE" {
			change.Value = append([]byte{}, e.KV.Value...)
		}
		take(change)
	}
	return nil
}

// Remove removes the copy before the cluster ends: each takes some hundred megabytes.
func (b Backup) Remove() error { return os.RemoveAll(b.dir) }
