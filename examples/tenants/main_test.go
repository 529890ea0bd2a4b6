package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// until cancels when all of the texts have been written.
type until struct {
	bytes.Buffer
	texts  []string
	cancel func()
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if !slices.ContainsFunc(u.texts, func(text string) bool { return !strings.Contains(u.String(), text) }) {
		u.cancel()
	}
	return n, err
}

func TestEachTenantIsPrintedWhenSomethingOfItChanges(t *testing.T) { synctest.Test(t, printsTenants) }

func printsTenants(t *testing.T) {
	// the simulation repeats every 3 seconds
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var errs bytes.Buffer
	out := &until{cancel: cancel, texts: []string{
		`s  red              2       5     31%   isolated`,
		`more than the 5 it pays for`,
		`s  green            1       0       -   no policy in mail`,
		`!       try 1: key "blue": the budget of namespace search is "two", which is no quantity`,
		`+1 Node`, `-1 Node`,
		`s  blue             2       3     1`,
		`s  green   gone`,
	}}
	require.NoError(t, run(ctx, nil, out, &errs), errs.String())
	for _, want := range out.texts {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "kube-system", "it has no tenant")
	assert.NotContains(t, out.String(), "\x1b")
	assert.Empty(t, errs.String())
}

func TestItEndsWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock stands still while the program works
		var out, errs bytes.Buffer
		start := time.Now()
		require.NoError(t, run(t.Context(), []string{"-for", "500ms"}, &out, &errs))
		assert.Equal(t, 500*time.Millisecond, time.Since(start))
		assert.Contains(t, out.String(), "isolated")
	})
}

func TestMistakesOfTheUserAreOneLine(t *testing.T) {
	for _, args := range [][]string{
		{"-kubeconfig", "/does/not/exist"},
		{"-for", "soon"},
		{"-for", "-1s"},
		{"-workers", "0"},
		{"-label", "not a label"},
		{"extra"},
	} {
		var out, errs bytes.Buffer
		err := run(t.Context(), args, &out, &errs)
		require.Error(t, err, args)
		assert.NotContains(t, err.Error(), "\n")
		assert.Empty(t, out.String())
	}
}

func TestAReportSaysWhatATenantMayUseAndWhatIsOpen(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{budget: "2"}}}
	quota := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceLimitsCPU: resource.MustParse("2500m")}}}
	r, err := compute(&Tenant{Namespaces: []*corev1.Namespace{ns}, Quotas: []*corev1.ResourceQuota{quota}})
	require.NoError(t, err)
	assert.Contains(t, r.String(), " 2500m       -   no policy in a; more than the 2 it pays for")

	ns.Annotations[budget] = "lots"
	_, err = compute(&Tenant{Namespaces: []*corev1.Namespace{ns}})
	require.ErrorContains(t, err, `the budget of namespace a is "lots"`)
}
