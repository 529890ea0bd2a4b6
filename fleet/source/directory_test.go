package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// write replaces a file as a careful program does.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".tmp~", []byte(text), 0o600), os.Rename(path+".tmp~", path)); err != nil {
		t.Fatal(err)
	}
}

// look lets a source look at its files again.
func look() {
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

func TestFilesOfADirectoryAreClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.kubeconfig"), kubeconfigText(t, "https://a"))
		write(t, filepath.Join(dir, ".hidden"), kubeconfigText(t, "https://hidden"))
		if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		r := run(t, Directory(dir))
		synctest.Wait()
		r.is(t, "a=https://a")
		first := r.member(t, "a")
		look()
		look()
		if n := r.sets(); n != 1 {
			t.Errorf("it has said %d times what it has said before", n)
		}
		write(t, filepath.Join(dir, "b.c.yaml"), kubeconfigText(t, "https://b"))
		write(t, filepath.Join(dir, "a.kubeconfig"), kubeconfigText(t, "https://a", token("new")))
		look()
		r.is(t, "a=https://a", "b.c=https://b")
		if now := r.member(t, "a"); now.Version == first.Version || now.Config.BearerToken != "new" {
			t.Errorf("%+v", now)
		}
		if err := os.Remove(filepath.Join(dir, "a.kubeconfig")); err != nil {
			t.Fatal(err)
		}
		look()
		r.is(t, "b.c=https://b")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		look()
		if r.is(t, "b.c=https://b"); !strings.Contains(r.trouble(), "no such file") {
			t.Errorf("trouble: %q", r.trouble())
		}
	})
}

// The number of files is the same at both looks.
func TestAFileThatGoesWhileAnotherComesIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a"), kubeconfigText(t, "https://a"))
		write(t, filepath.Join(dir, "b"), kubeconfigText(t, "https://b"))
		r := run(t, Directory(dir))
		synctest.Wait()
		if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "c")); err != nil {
			t.Fatal(err)
		}
		look()
		r.is(t, "b=https://b", "c=https://a")
	})
}

// A program that writes a file in place leaves a part of it for a moment, or for ever.
func TestAHalfWrittenFileRemovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "a")
		write(t, path, kubeconfigText(t, "https://127.0.0.1:1"))
		f := newFleet(t, Directory(dir))
		eventually(t, f, "it has joined", func() bool { return f.Cluster("a") != nil })
		a := f.Cluster("a")
		for _, text := range []string{"", kubeconfigText(t, "https://127.0.0.1:1")[:100]} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			eventually(t, f, "the status says so", func() bool {
				return f.Cluster("a") != a || strings.Contains(a.Health().Rotation, "file "+path)
			})
			if f.Cluster("a") != a {
				t.Fatalf("%q has removed the cluster", text)
			}
			write(t, path, kubeconfigText(t, "https://127.0.0.1:1"))
			eventually(t, f, "it is well", func() bool { return a.Health().Rotation == "" })
		}
		if f.Cluster("a") != a || a.Health().Rotation != "" {
			t.Error(f.Status())
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		eventually(t, f, "it has left", func() bool { return f.Cluster("a") == nil })
	})
}

// Kubernetes mounts a Secret so: files are links into a folder that a link names, which is
// replaced.
func TestADirectoryMayBeAMountedSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		publish := func(version string, files map[string]string) {
			data := filepath.Join(dir, "..2026_"+version)
			if err := os.Mkdir(data, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range files {
				write(t, filepath.Join(data, name), text)
			}
			next := filepath.Join(dir, "..data_tmp")
			if err := errors.Join(os.Symlink(filepath.Base(data), next), os.Rename(next, filepath.Join(dir, "..data"))); err != nil {
				t.Fatal(err)
			}
			for name := range files {
				_ = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)) // it may be there
			}
		}
		publish("1", map[string]string{"a.conf": kubeconfigText(t, "https://a1"), "b.conf": kubeconfigText(t, "https://b1")})
		r := run(t, Directory(dir))
		synctest.Wait()
		r.is(t, "a=https://a1", "b=https://b1")
		publish("2", map[string]string{"a.conf": kubeconfigText(t, "https://a2")})
		look()
		r.is(t, "a=https://a2")
	})
}

func TestOfTwoFilesWithOneNameTheFirstCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.yaml"), kubeconfigText(t, "https://yaml"))
		write(t, filepath.Join(dir, "a.conf"), kubeconfigText(t, "https://conf"))
		r := run(t, Directory(dir))
		synctest.Wait()
		r.is(t, "a!", "a=https://conf")
	})
}

// What is in a file is this machine's own.
func TestPathsInAFileAreRelativeToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, ".token"), canary)
		relative := func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token, u.TokenFile = "", ".token" }
		write(t, filepath.Join(dir, "a"), kubeconfigText(t, "https://a", relative))
		missing := func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token, u.TokenFile = "", "missing" }
		write(t, filepath.Join(dir, "b"), kubeconfigText(t, "https://b", missing))
		write(t, filepath.Join(dir, "c"), kubeconfigText(t, "https://c", exec("./no-such-program")))
		r := run(t, Directory(dir))
		synctest.Wait()
		r.is(t, "a=https://a", "b!", "c=https://c")
		if got := r.member(t, "a").Config.BearerTokenFile; got != filepath.Join(dir, ".token") {
			t.Errorf("the token is in %q", got)
		}
		if got := r.member(t, "c").Config.ExecProvider.Command; got != "./no-such-program" && got != filepath.Join(dir, "no-such-program") {
			t.Errorf("the program is %q", got)
		}
		if err := r.member(t, "b").Err; !strings.Contains(err.Error(), filepath.Join(dir, "missing")) {
			t.Error(err)
		}
	})
}

// A file is read only if it may have changed.
func TestAFileThatHasNotChangedIsNotRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	write(t, path, kubeconfigText(t, "https://a"))
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	read := stamp{info, time.Now()}
	if !read.unchanged(info, time.Second) {
		t.Error("an old file that is the same has changed")
	}
	if (stamp{info, old.Add(time.Millisecond)}).unchanged(info, time.Second) {
		t.Error("a file that was read when it was young may have changed in that moment")
	}
	if read.unchanged(nil, time.Second) || (stamp{nil, time.Now()}).unchanged(info, time.Second) {
		t.Error("a file that could not be looked at has not changed")
	}
	write(t, path, kubeconfigText(t, "https://a", token(canary+"-other")))
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if after.Size() != info.Size() || read.unchanged(after, time.Second) {
		t.Error("another file of the same size and time is the same")
	}
}

func TestFilesAreLookedAtAsOftenAsWithPollSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFleet(t, Directory(dir, WithPoll(time.Hour)))
		synctest.Wait()
		write(t, filepath.Join(dir, "a"), kubeconfigText(t, "https://127.0.0.1:1"))
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if f.Cluster("a") != nil {
			t.Error("it was looked at before the hour was over")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if f.Cluster("a") == nil {
			t.Error("it was not looked at after an hour")
		}
	})
}

// Outside of a bubble, whose clock is not that of the files, one that has not changed is not read.
func TestAFileIsSeenBesideOneThatHasNotChanged(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), kubeconfigText(t, "https://127.0.0.1:1"))
	f := newFleet(t, Directory(dir, WithPoll(0)))
	eventually(t, f, "the first has joined", func() bool { return f.Cluster("a") != nil })
	a := f.Cluster("a")
	write(t, filepath.Join(dir, "b"), kubeconfigText(t, "https://127.0.0.1:2"))
	eventually(t, f, "the second has joined", func() bool { return f.Cluster("b") != nil })
	if f.Cluster("a") != a {
		t.Error("the first is another one")
	}
}
