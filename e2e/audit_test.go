package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/e2e/cluster"
)

// audited is a cluster of its own. Its API server logs who has written what.
type audited struct {
	*cluster.Cluster
	log  auditLog
	all  []auditEvent   // what was read of the log
	held chan heldWrite // by replicas, see holdAWrite
}

// policy logs every write when it has been answered.
const policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

func newAudited(t *testing.T, flags ...string) *audited {
	t.Helper()
	dir := t.TempDir()
	rules := filepath.Join(dir, "policy.yaml")
	require.NoError(t, os.WriteFile(rules, []byte(policy), 0o600))
	flags = append(flags, "audit-policy-file="+rules, "audit-log-path="+filepath.Join(dir, "audit.log"))
	c, err := cluster.Start(t.Context(), flags...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	log := auditLog{dir: dir, read: map[string]int64{}}
	return &audited{Cluster: c, log: log, held: make(chan heldWrite, heldMost)}
}

// auditEvent holds the fields that the tests read of an event of audit.k8s.io/v1.
type auditEvent struct {
	AuditID    string `json:"auditID"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource, Namespace, Name string
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int32 `json:"code"`
	} `json:"responseStatus"`
	StageTimestamp metav1.MicroTime `json:"stageTimestamp"`
}

// auditedWrite is one write that was answered.
type auditedWrite struct {
	user, verb, resource, name string
	code                       int32
	at                         time.Time // when it was answered
}

func (w auditedWrite) landed() bool { return w.code < 300 }

func (w auditedWrite) lease() bool { return w.resource == "leases" }

// writes returns the writes in a namespace, in the order in which they were answered. Only the
// goroutine of the test calls writes.
func (a *audited) writes(t *testing.T, namespace string) (all []auditedWrite) {
	t.Helper()
	require.NoError(t, a.log.next(func(e auditEvent) { a.all = append(a.all, e) }))
	for _, e := range a.all {
		if e.ObjectRef == nil || e.ObjectRef.Namespace != namespace || e.ResponseStatus == nil {
			continue
		}
		all = append(all, auditedWrite{
			user: e.User.Username, verb: e.Verb, resource: e.ObjectRef.Resource, name: e.ObjectRef.Name,
			code: e.ResponseStatus.Code, at: e.StageTimestamp.Time,
		})
	}
	slices.SortStableFunc(all, func(x, y auditedWrite) int { return x.at.Compare(y.at) })
	return all
}

// auditLog reads the log of one API server, which rotates it, bit by bit.
type auditLog struct {
	dir  string
	read map[string]int64 // bytes, by the name of the file that it is or was last
}

// next calls take with the events that are new. The server's current file is audit.log. A file
// that is full gets another name, and then is read to its end and removed.
func (a *auditLog) next(take func(auditEvent)) error {
	full, err := filepath.Glob(filepath.Join(a.dir, "audit-*.log"))
	if err != nil {
		return err
	}
	for _, path := range full {
		if err := a.rest(path, a.read["audit.log"], take); err != nil {
			return err
		}
		clear(a.read)
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return a.rest(filepath.Join(a.dir, "audit.log"), a.read["audit.log"], take)
}

// rest reads the whole lines after an offset.
func (a *auditLog) rest(path string, offset int64, take func(auditEvent)) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	for lines := bufio.NewReaderSize(f, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			a.read[filepath.Base(path)] = offset
			return nil
		}
		if err != nil {
			return err
		}
		offset += int64(len(line))
		var e auditEvent
		if begin := bytes.LastIndex(line, []byte(`{"kind":"Event"`)); begin > 0 {
			line = line[begin:] // a killed server has left the beginning of another event
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		take(e)
	}
}

func TestAnAuditLogIsReadToTheEndThroughItsRotation(t *testing.T) {
	a := &auditLog{dir: t.TempDir(), read: map[string]int64{}}
	var all string
	next := func() {
		require.NoError(t, a.next(func(e auditEvent) { all += e.AuditID }))
	}
	current := filepath.Join(a.dir, "audit.log")
	write := func(text string) {
		f, err := os.OpenFile(current, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	next()
	write("{\"auditID\":\"a\"}\n{\"audit")
	next()
	assert.Equal(t, "a", all, "the second is not whole")
	write("ID\":\"b\"}\n")
	require.NoError(t, os.Rename(current, filepath.Join(a.dir, "audit-2026.log")))
	write("{\"auditID\":\"c\"}\n")
	next()
	next()
	assert.Equal(t, "abc", all)
}
