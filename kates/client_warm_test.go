package kates_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
	"github.com/kates-go/kates/kates/katestest"
)

// warmForms is what the tests of warm starts watch: every form.
type warmForms struct {
	ConfigMaps []*kates.ConfigMap
	Untyped    []*kates.Unstructured          `kates:"configmaps"`
	Metadata   []*kates.PartialObjectMetadata `kates:"configmaps"`
	Fields     []configLite                   `kates:"configmaps"`
	Pods       []*kates.Pod
	Invalid    []kates.Invalid
}

type configLite struct {
	Metadata struct{ Name string }
	Data     map[string]string
}

// seeded is a server with some config maps, pods and a Secret.
func seeded(t *testing.T) *rest.Config {
	t.Helper()
	server := katestest.NewServer(t)
	seed := connected(t, server.Config)
	for i := range 5 {
		cm := &kates.ConfigMap{Data: map[string]string{"k": fmt.Sprint(i)}}
		cm.Namespace, cm.Name = "default", fmt.Sprint("cm-", i)
		require.NoError(t, seed.Create(t.Context(), cm, nil))
		pod := &kates.Pod{}
		pod.Namespace, pod.Name = "default", fmt.Sprint("pod-", i)
		pod.Spec.Containers = []kates.Container{{Name: "c", Image: "i", Env: []kates.EnvVar{{Name: "E", Value: "v"}}}}
		require.NoError(t, seed.Create(t.Context(), pod, nil))
	}
	s := &kates.Secret{Data: map[string][]byte{"password": []byte("nobody-may-read-this")}}
	s.Namespace, s.Name = "default", "s"
	require.NoError(t, seed.Create(t.Context(), s, nil))
	s.Name = "s2"
	require.NoError(t, seed.Create(t.Context(), s, nil))
	return server.Config
}

func starts(c *kates.Client) map[string]string {
	all := make(map[string]string)
	for _, q := range c.Status().Queries {
		all[q.Name] = q.Start
	}
	return all
}

func TestG1EveryFormStartsWarmAndShowsTheSame(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		config := seeded(t)
		first := connected(t, config, kates.WithWarmStart(kates.WarmStartDir(dir)))
		_, snap := started[warmForms](t, first)
		assert.Len(t, snap.ConfigMaps, 5)
		for name, how := range starts(first) {
			assert.Equal(t, "list: nothing is kept of it", how, name)
		}
		first.Close()
		second := connected(t, config, kates.WithWarmStart(kates.WarmStartDir(dir)))
		_, again := started[warmForms](t, second)
		assert.Equal(t, snap, again)
		for name, how := range starts(second) {
			assert.Equal(t, "warm", how, name)
		}
		synctest.Wait()
		for _, s := range inspect.Of(second).Streams {
			assert.Empty(t, s.Lists, s.Resource)
			assert.Equal(t, map[inspect.WatchReason]uint64{inspect.WatchKept: 1}, s.Watches, s.Resource)
		}
	})
}

func TestSecretsAreInNoFileWithoutAKeyAndUnreadableWithOne(t *testing.T) {
	dir := t.TempDir()
	type forms struct {
		Secrets  []*kates.Secret
		Untyped  []*kates.Unstructured          `kates:"secrets"`
		Metadata []*kates.PartialObjectMetadata `kates:"secrets"`
	}
	synctest.Test(t, func(t *testing.T) {
		config := seeded(t)
		run := func(settings ...kates.WarmStartSetting) map[string]string {
			c := connected(t, config, kates.WithWarmStart(kates.WarmStartDir(dir), settings...))
			_, snap := started[forms](t, c)
			assert.Len(t, snap.Secrets, 2)
			time.Sleep(5 * time.Minute)
			c.Close()
			return starts(c)
		}
		run()
		all, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Empty(t, all)
		key := kates.WarmStartKey(bytes.Repeat([]byte{1}, 32))
		run(key)
		for _, path := range files(t, dir) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, secret := range []string{"nobody-may-read-this", "bm9ib2R5LW1heS1yZWFkLXRoaXM"} {
				assert.NotContains(t, string(text), secret)
			}
		}
		c := connected(t, config, kates.WithWarmStart(kates.WarmStartDir(dir), key))
		_, snap := started[forms](t, c)
		assert.Equal(t, "nobody-may-read-this", string(snap.Secrets[0].Data["password"]))
		for name, how := range starts(c) {
			assert.Equal(t, "warm", how, name)
		}
	})
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	return all
}

func TestAnObjectThatDoesNotDecodeIsNotKeptAndIsInvalidAgain(t *testing.T) {
	dir := t.TempDir()
	type strict struct {
		ConfigMaps []struct {
			Metadata struct{ Name string }
			Data     map[string]bad
		} `kates:"configmaps"`
		Invalid []kates.Invalid
	}
	synctest.Test(t, func(t *testing.T) {
		config := seeded(t)
		for range 2 {
			c := connected(t, config, kates.WithWarmStart(kates.WarmStartDir(dir)))
			_, snap := started[strict](t, c)
			assert.Len(t, snap.ConfigMaps, 4)
			assert.Len(t, snap.Invalid, 1)
			assert.Contains(t, starts(c)["ConfigMaps"], "nothing is kept")
			c.Close()
		}
	})
}

// bad does not take "3".
type bad string

func (b *bad) UnmarshalText(text []byte) error {
	if string(text) == "3" {
		return errors.New("no three")
	}
	*b = bad(text)
	return nil
}

func TestOptionsOfWarmStartsThatMakeNoSenseAreErrors(t *testing.T) {
	dir := kates.WarmStartDir("x")
	for name, o := range map[string]kates.Option{
		"store":       kates.WithWarmStart(nil),
		"names no":    kates.WithWarmStart(kates.WarmStartDir("")),
		"is nil":      kates.WithWarmStart(dir, nil),
		"Every":       kates.WithWarmStart(dir, kates.WarmStartEvery(0)),
		"Wait":        kates.WithWarmStart(dir, kates.WarmStartWait(-1)),
		"MaxBytes":    kates.WithWarmStart(dir, kates.WarmStartMaxBytes(-1)),
		"has 5 bytes": kates.WithWarmStart(dir, kates.WarmStartKey([]byte("short"))),
		"has 0 bytes": kates.WithWarmStart(dir, kates.WarmStartKey(nil)),
	} {
		_, err := kates.NewClientFromRESTConfig(&rest.Config{Host: "localhost"}, o)
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), name)
		assert.False(t, strings.Contains(err.Error(), "short"), "the key")
	}
}

func TestABareFakeStartsWithAListAndSaysSo(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(kates.WithWarmStart(kates.WarmStartDir(dir))))
		_, _ = started[struct{ ConfigMaps []*kates.ConfigMap }](t, fake.Client)
		assert.Equal(t, "list: the server has no versions", starts(fake.Client)["ConfigMaps"])
		fake.Client.Close()
		assert.Empty(t, files(t, dir))
	})
}
