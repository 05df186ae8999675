/* Is linked to a library that goes on after its end. */
void use_late_library(void);

int main(void) {
    use_late_library();
    return 0;
}
