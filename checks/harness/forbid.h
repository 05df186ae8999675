#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
// From now on a system call fails with this error.
static void forbid(int call, int error) {
    struct sock_filter rules[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
                                  {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
                                  {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | error},
                                  {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    struct sock_fprog program = {4, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) UNSUPPORTED("system calls cannot be filtered here");
}
