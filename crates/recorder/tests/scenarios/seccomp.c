/* Forbids itself a system call, by number, from here on: the kernel reacts as the second argument
   names. Then continues. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>

int main(int count, char **words) {
    if (count < 3)
        return 1;
    free(malloc(8901));
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, strtoul(words[1], NULL, 10), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, strtoul(words[2], NULL, 10)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 2;
    for (int i = 0; i < 400000; i++)
        free(malloc(8902));
    return 0;
}
