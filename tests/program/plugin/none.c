/* A shared object that is not a plugin. */
int not_a_plugin(void);
int not_a_plugin(void)
{
    return 0;
}
