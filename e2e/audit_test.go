package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/e2e/cluster"
)

// audited is a cluster of its own. Its API server logs who has written what.
type audited struct {
	*cluster.Cluster
	log  string
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

func newAudited(t *testing.T) *audited {
	t.Helper()
	dir := t.TempDir()
	rules, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	require.NoError(t, os.WriteFile(rules, []byte(policy), 0o600))
	c, err := cluster.Start(t.Context(), "audit-policy-file="+rules, "audit-log-path="+log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	return &audited{c, log, make(chan heldWrite, heldMost)}
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

// writes returns the writes in a namespace, in the order in which they were answered.
func (a *audited) writes(t *testing.T, namespace string) (all []auditedWrite) {
	t.Helper()
	content, err := os.ReadFile(a.log)
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		if e.ObjectRef == nil || e.ObjectRef.Namespace != namespace || e.ResponseStatus == nil {
			continue
		}
		all = append(all, auditedWrite{
			user: e.User.Username, verb: e.Verb, resource: e.ObjectRef.Resource, name: e.ObjectRef.Name,
			code: e.ResponseStatus.Code, at: e.StageTimestamp.Time,
		})
	}
	require.NoError(t, lines.Err())
	slices.SortStableFunc(all, func(x, y auditedWrite) int { return x.at.Compare(y.at) })
	return all
}
